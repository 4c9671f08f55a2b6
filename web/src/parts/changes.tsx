// Changes of a state: a sign, the place, before and after.

import { plain } from "../pure/invisible.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { signed, written, type Change } from "../pure/places.ts";
import { T } from "./text.tsx";
import { Line } from "./value.tsx";

export function Changes({ run, tick, of }: { run: string; tick: number; of: readonly Change[] }) {
  if (of.length === 0) return <p class="dim">no change of the state</p>;
  return (
    <table class="changes">
      <thead class="hidden"><tr><th>sign</th><th>place</th><th>value</th><th>links</th></tr></thead>
      <tbody>
        {signed(of).map((change) => (
          <tr key={change.path} class={change.sign === "+" ? "add" : change.sign === "-" ? "cut" : "alter"}>
            <td class="sign"><span aria-hidden="true">{change.sign}</span><span class="hidden">{change.sign === "+" ? "added" : change.sign === "-" ? "removed" : "changed"}</span></td>
            <td class="place"><a href={pathOf(run, "state", tick) + queryOf({ path: change.path })}><T of={written(change.path)} limit={120} /></a></td>
            <td>
              {"before" in change && <Line value={change.before} limit={60} />}
              {change.sign === "~" && <span class="arrow" aria-label="to"> -&gt; </span>}
              {change.sign === "-" && <span class="dim"> removed</span>}
              {"after" in change && <Line value={change.after} limit={90} />}
            </td>
            <td class="acts">
              <a href={pathOf(run, "why", tick) + queryOf({ path: change.path })} aria-label={`why ${plain(written(change.path))}`}>why</a>
              {" "}<a href={pathOf(run, "backtrack") + queryOf({ path: change.path, t: tick })} aria-label={`history of ${plain(written(change.path))}`}>history</a>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
