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
dendrer verify --all --replay
mkdir -p "$dir"
cp -r .dendrer "$dir/store"
rm -rf "$dir/store/index" "$dir/store/lock"
dendrer runs --all --sort name -n 0 --json | python3 -c '
import json, sys
runs = json.load(sys.stdin)["items"]
json.dump([{"run": r["name"], "ticks": r["ticks"], "tip": r["tip"], "refusals": r["refusals"]} for r in runs], sys.stdout, indent=1)
print()' >"$dir/runs.json"
