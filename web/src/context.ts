// The report, shared by all views.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Report } from "./report";

export const ReportContext = createContext<Report | null>(null);

export function useReport(): Report {
  const report = useContext(ReportContext);
  if (!report) throw new Error("No report in this context.");
  return report;
}
