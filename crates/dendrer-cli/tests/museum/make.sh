#!/usr/bin/env bash
# Records a store for the museum: make.sh DIR, with `dendrer` on the path. Each later build replays what is in DIR
# (tests/it/museum.rs), so a store is made once and never made again under the same name.
set -euo pipefail
dir=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME=$work/home
cat >fund.yaml <<'PACK'
name: club.fund
version: v1
state:
  cash: {init: 500, decimals: 2}
  limit: {init: 50}
  paid: {init: "[]", combine: append}
  guests: {init: "[]", combine: set}
types: {pay_member: money goes to a member, invite: a guest is asked}
tools: {transfer: {effect: effectful}, look: {effect: read}}
rules:
  - when_type: pay_member
    steps:
      - {add: cash, value: 0 - t.intent.amount}
      - {append: paid, value: t.intent.to}
  - when_type: invite
    steps: [{append: guests, value: t.intent.guest}]
contracts:
  pay_member: {required_state: {cash: {type: number, precision: 2}, limit: {type: number}}, hash_seeds: [limit]}
violations:
  - {id: overdrawn, condition: state.cash < 0, bisect_predicate: monotone_lift}
PACK
sed 's/version: v1/version: v2/; s/init: 500/init: 400/' fund.yaml >fund2.yaml
dendrer init
commit() { dendrer commit --run "$@" || [ $? = 5 ]; }
commit desk --pack fund.yaml --stage 2 --goal "pay what is due" <<'LINES'
{"type":"observation.add","agent":"ann","key":"seen-1","intent":{"description":"lee asks for money"}}
{"type":"pay_member","agent":"ann","base":1,"key":"pay-1","intent":{"to":"lee","amount":120.005}}
{"type":"pay_member","agent":"bob","base":1,"intent":{"to":"lee","amount":120}}
{"type":"kernel.anomaly","agent":"bob"}
{"type":"invite","agent":"ann","intent":{"guest":"Zoé","confidence":0.75}}
{"type":"action.request","agent":"ann","action":{"tool":"look","call_id":"c1","params":{"n":[1,2.5,-0.0,1e300,12345678901234567890]}}}
LINES
printf '%s\n' '{"type":"action.result","agent":"ann","action":{"tool":"look","call_id":"c1","params":{"n":1}},"result":{"output":{"deep":[{"a":null}]},"status":"ok"}}' |
  commit desk
commit free <<'LINES'
{"type":"plan.update","agent":"a","delta":[{"set":"/room","value":1},{"set":"/guests","value":{"ivy":true}}]}
{"type":"plan.update","agent":"b","delta":[{"add":"/room","value":1},{"remove":"/guests/ivy"}]}
LINES
dendrer fork desk@1 --set limit=40 --replay-rest --skip --as retry
dendrer fork desk@2 --policy "be careful" --as branch
commit branch <<<'{"type":"invite","agent":"bob","intent":{"guest":"max"}}'
commit other --pack fund.yaml --stage 2 <<<'{"type":"pay_member","agent":"cem","intent":{"to":"kim","amount":3.5}}'
dendrer cherrypick other@1 --into branch
dendrer cherrypick desk@4 --into other || [ $? = 5 ]
dendrer rebase branch --onto desk --as moved || [ $? = 1 ]
dendrer merge --as both --from desk --from branch --strategy lww
dendrer fork free@1 --as left
dendrer fork free@1 --as right
commit left <<<'{"type":"plan.update","agent":"l","delta":[{"set":"/room","value":7}]}'
commit right <<<'{"type":"plan.update","agent":"r","delta":[{"set":"/room","value":8}]}'
dendrer merge --as open --from left --from right
dendrer conflicts resolve open room --take b --reason "it is larger"
dendrer reduce desk --pack fund2.yaml --as desk.v2
dendrer label before-pay desk@1
dendrer note desk@2 "lee was paid"
dendrer bisect desk --holds 'state.cash > 450' --record || [ $? = 0 ]
dendrer runs drop left --reason "a try"
# Commitments, several calls in a line, a denial that was not kept, and a delegation.
commit duty --stage 2 --as user <<'LINES'
{"type":"observation.add","agent":"user","evidence":[{"id":"U1","content":"ship only on friday"}],"commitments":[{"id":"O1","type":"obl","hard":true,"gloss":"no ship but on friday","support":["U1"],"holds":"action.tool != 'ship' || state.day == 'friday'"},{"id":"O2","type":"obl","hard":true,"gloss":"never more than 5","holds":"action.tool != 'buy' || action.params.n <= 5"},{"id":"G1","type":"goal","gloss":"find one"}]}
LINES
commit duty <<'LINES'
{"type":"plan.update","agent":"dev","delta":[{"set":"/day","value":"monday"}],"commitments":[{"id":"P1","type":"plan","gloss":"ship all","hard":true,"support":["U1"]}],"edges":[{"edge":"conflicts-with","from":"O1","to":"O2"}]}
{"type":"action.request","agent":"dev","action":{"calls":[{"tool":"look"},{"tool":"ship","params":{"n":1}}]}}
{"type":"action.request","agent":"dev","action":{"tool":"buy","params":{"n":9},"call_id":"b1"}}
{"type":"action.request","agent":"dev","action":{"tool":"buy","params":{"n":4},"call_id":"b2"}}
LINES
commit duty --as runtime <<'LINES'
{"type":"policy.decision","agent":"dev","policy":{"decision":"deny","transition_type":"action.request"}}
{"type":"action.result","agent":"dev","action":{"tool":"buy","call_id":"b2"},"result":{"output":{"paid":4},"status":"ok"}}
LINES
printf '%s' '{"id":"D1","gloss":"look around","goal":"G1","allowed":{"tools":["look"],"files":["src/*"]},"budget":{"steps":2}}' >scope.json
dendrer commitments delegate duty --scope scope.json --as helper
commit helper <<'LINES'
{"type":"action.request","agent":"h","action":{"tool":"look","params":{"file_path":"/etc/x"}}}
{"type":"action.request","agent":"h","action":{"tool":"ship"}}
{"type":"goal.complete","agent":"h","commitments":[{"id":"H1","type":"hyp","gloss":"there is one"}],"edges":[{"edge":"conflicts-with","from":"H1","to":"O2"}]}
LINES
dendrer commitments accept duty --from helper || [ $? -le 5 ]
cat >rules.json <<'RULES'
[{"id":"no_wipe","holds":"t.action.tool != 'wipe'","enforce":true},{"id":"few","holds":"state.n < 3","enforce":true},{"id":"told","holds":"state.n < 2"}]
RULES
printf '%s' '{"n":0}' >zero.json
commit held --stage 2 --policy rules.json --state zero.json <<'LINES'
{"type":"action.request","agent":"a","action":{"tool":"wipe"}}
{"type":"action.request","agent":"a","action":{"calls":[{"tool":"ls"},{"tool":"wipe"}]}}
{"type":"plan.update","agent":"a","delta":[{"add":"/n","value":2}]}
{"type":"plan.update","agent":"a","delta":[{"add":"/n","value":2}]}
LINES
dendrer verify --all --replay
mkdir -p "$dir"
cp -r .dendrer "$dir/store"
rm -rf "$dir/store/index" "$dir/store/lock"
dendrer runs --all --sort name -n 0 --json | python3 -c '
import json, sys
runs = json.load(sys.stdin)["items"]
json.dump([{"run": r["name"], "ticks": r["ticks"], "tip": r["tip"], "refusals": r["refusals"]} for r in runs], sys.stdout, indent=1)
print()' >"$dir/runs.json"
