// The report every view speaks of.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Report } from "./report";

export const ReportContext = createContext<Report | null>(null);

export function useReport(): Report {
  const report = useContext(ReportContext);
  if (!report) throw new Error("There is no report here.");
  return report;
}
