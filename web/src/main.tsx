// Entry of the page: the frame, and the screen of the address.

import { render } from "preact";
import { useEffect, useErrorBoundary } from "preact/hooks";
import { asking } from "./api.ts";
import { begin } from "./live.ts";
import { follow, path, route } from "./nav.ts";
import { Fault } from "./parts/fault.tsx";
import { Header, Rail, Scrubber, Shared, useTitle } from "./parts/frame.tsx";
import { Palette } from "./parts/palette.tsx";
import { T } from "./parts/text.tsx";
import { countTicks, last, loadRuns, runsFailure } from "./store.ts";
import { BisectScreen } from "./screens/bisect.tsx";
import { CompareScreen } from "./screens/compare.tsx";
import { DiffScreen } from "./screens/diff.tsx";
import { HeatmapScreen } from "./screens/heatmap.tsx";
import { HelpScreen } from "./screens/help.tsx";
import { LayoutScreen } from "./screens/layout.tsx";
import { RunScreen } from "./screens/run.tsx";
import { RunsScreen } from "./screens/runs.tsx";
import { StateScreen } from "./screens/state.tsx";
import { StepsScreen } from "./screens/steps.tsx";
import { BacktrackScreen, CommitmentsScreen, ConflictsScreen, ContractScreen, WhyScreen } from "./screens/tables.tsx";
import { VerifyScreen } from "./screens/verify.tsx";
import "./theme.ts";

function Screen() {
  const here = route.value;
  switch (here.name) {
    case "runs": return <RunsScreen />;
    case "run": return <RunScreen key={here.run} run={here.run} />;
    case "help": return <HelpScreen page={here.page} />;
    case "lost": return <div class="screen"><h1 tabIndex={-1}>No such page</h1><p>This address has no page. <a href="/runs">All runs</a></p></div>;
    case "view":
      switch (here.view) {
        case "state": return <StateScreen run={here.run} tick={here.tick ?? 0} />;
        case "why": return <WhyScreen run={here.run} tick={here.tick ?? 0} />;
        case "diff": return <DiffScreen run={here.run} />;
        case "bisect": return <BisectScreen run={here.run} />;
        case "verify": return <VerifyScreen run={here.run} />;
        case "commitments": return <CommitmentsScreen run={here.run} />;
        case "contract": return <ContractScreen run={here.run} />;
        case "conflicts": return <ConflictsScreen run={here.run} />;
        case "heatmap": return <HeatmapScreen run={here.run} />;
        case "compare": return <CompareScreen run={here.run} />;
        case "layout": return <LayoutScreen run={here.run} />;
        case "steps": return <StepsScreen run={here.run} />;
        case "backtrack": return <BacktrackScreen run={here.run} />;
      }
  }
}

/** Keeps a fault of one screen from the others: the frame stays, and the fault is said. */
function Guarded() {
  const [fault, reset] = useErrorBoundary();
  const address = path.value;
  useEffect(() => reset(), [address]);
  if (fault === undefined) return <Screen />;
  return <div class="screen"><h1 tabIndex={-1}>This screen has a fault</h1><p class="fault" role="alert"><T of={String(fault)} limit={400} /></p><p>Its document can be read: add <code>.json</code> to the address.</p></div>;
}

function App() {
  useTitle();
  const here = route.value;
  const name = "run" in here ? here.run : null;
  useEffect(() => {
    if (name !== null && last.peek() === null) void countTicks(name);
  }, [name]);
  return (
    <div class={`app screen-${here.name}`} data-asking={asking.value} onClick={follow}>
      <a class="skip" href="#main">Skip to the content</a>
      <Header />
      <Rail />
      <main id="main" tabIndex={-1}>
        {runsFailure.value && runsFailure.value.code !== "E0101" && <Fault of={runsFailure.value} />}
        <Guarded />
      </main>
      <Scrubber />
      <Shared />
      <Palette />
    </div>
  );
}

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
void loadRuns();
begin();
