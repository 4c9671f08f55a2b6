;; A predicate written by hand: violated when the number behind the first "risk_score" of the state is above 0.75.
;; It looks for bytes and reads no JSON, so it is an example of the interface, not of how to read a state;
;; risk.ts and rust/ beside it do. docs/wasm.md says what each export is for.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "\"ok\"")
  (data (i32.const 16) "\"violation\"")
  (data (i32.const 32) "\"risk_score\":")

  ;; The state is put here: behind our own data, in as much memory as it takes.
  (func (export "alloc") (param $length i32) (result i32)
    (drop (memory.grow (i32.add (i32.shr_u (local.get $length) (i32.const 16)) (i32.const 1))))
    (i32.const 64))

  ;; Whether the 13 bytes of the name stand here.
  (func $is_name (param $at i32) (result i32)
    (local $i i32)
    (loop $next
      (if (i32.ne (i32.load8_u (i32.add (local.get $at) (local.get $i)))
                  (i32.load8_u offset=32 (local.get $i)))
        (then (return (i32.const 0))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 13))))
    (i32.const 1))

  ;; The number that begins here, in hundredths; what follows the second decimal counts as one more.
  (func $hundredths (param $at i32) (result i32)
    (local $value i32) (local $decimals i32) (local $byte i32)
    (loop $next
      (local.set $byte (i32.load8_u (local.get $at)))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (if (i32.eq (local.get $byte) (i32.const 46))
        (then (local.set $decimals (i32.const 1)) (br $next)))
      (if (i32.lt_u (i32.sub (local.get $byte) (i32.const 48)) (i32.const 10))
        (then
          (if (i32.eq (local.get $decimals) (i32.const 3))
            (then (return (i32.add (local.get $value) (i32.const 1)))))
          (local.set $value (i32.add (i32.mul (local.get $value) (i32.const 10))
                                     (i32.sub (local.get $byte) (i32.const 48))))
          (if (local.get $decimals)
            (then (local.set $decimals (i32.add (local.get $decimals) (i32.const 1)))))
          (br $next))))
    (loop $fill
      (if (i32.lt_u (local.get $decimals) (i32.const 3))
        (then
          (local.set $value (i32.mul (local.get $value) (i32.const 10)))
          (local.set $decimals
            (i32.add (select (local.get $decimals) (i32.const 1) (local.get $decimals)) (i32.const 1)))
          (br $fill))))
    (local.get $value))

  ;; The place of the answer in the upper half, its length in the lower: "ok" is 4 bytes at 0.
  (func (export "evaluate") (param $at i32) (param $length i32) (result i64)
    (local $end i32)
    (if (i32.lt_u (local.get $length) (i32.const 14)) (then (return (i64.const 4))))
    (local.set $end (i32.add (local.get $at) (i32.sub (local.get $length) (i32.const 13))))
    (loop $next
      (if (call $is_name (local.get $at))
        (then
          (return (select (i64.const 0x100000000b) (i64.const 4)
            (i32.gt_u (call $hundredths (i32.add (local.get $at) (i32.const 13))) (i32.const 75))))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
    (i64.const 4)))
