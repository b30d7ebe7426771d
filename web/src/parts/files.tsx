// Links to the files of the run, next to report.html.

import type { ComponentChildren } from "preact";
import type { Head } from "../contract";

const address = (head: Head, name: string) =>
  head.files_at + name.split("/").map(encodeURIComponent).join("/");

/** A link to a file of the run; plain text if the run does not have it. */
export function FileLink({ head, name }: { head: Head; name: string }): ComponentChildren {
  const there = head.files.some((file) => file.name === name);
  return there ? <a href={address(head, name)}><code>{name}</code></a> : <code>{name}</code>;
}

export function Files({ head }: { head: Head }) {
  return (
    <dl class="files-list">
      {head.files.map(({ name, what }) => (
        <div key={name}>
          <dt><FileLink head={head} name={name} /></dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}
