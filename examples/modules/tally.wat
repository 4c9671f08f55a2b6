;; A reducer written by hand: an `action.result` whose output has an amount and a category is counted and added up under
;; `tally`, in its category. It looks for bytes and reads no JSON, so it is an example of the interface, not of how to read
;; a transition; tally.ts and rust/ beside it do. docs/wasm.md says what each export is for.
;;
;; Which categories there are is said by the state: the kernel adds only to a number that is there.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "\"output\":{")
  (data (i32.const 16) "\"amount\":")
  (data (i32.const 32) "\"category\":\"")
  (data (i32.const 48) "\"type\":\"action.result\"}}")
  (data (i32.const 80) "[]")
  (data (i32.const 96) "{\"error\":\"an amount is a number, and its category a word of at most 64 plain signs\"}")
  (data (i32.const 192) "[{\"add\":\"/tally/")
  (data (i32.const 208) "/count\",\"value\":1},{\"add\":\"/tally/")
  (data (i32.const 256) "/sum\",\"value\":")
  (data (i32.const 272) "}]")

  ;; Where the answer is written to, from 512 on, and where the transition ends.
  (global $out (mut i32) (i32.const 512))
  (global $end (mut i32) (i32.const 0))

  ;; The input is put behind the answer, in as much memory as it takes.
  (func (export "alloc") (param $length i32) (result i32)
    (drop (memory.grow (i32.add (i32.shr_u (local.get $length) (i32.const 16)) (i32.const 1))))
    (i32.const 1024))

  ;; Whether the bytes of a text stand here.
  (func $is (param $at i32) (param $text i32) (param $length i32) (result i32)
    (local $i i32)
    (loop $next
      (if (i32.ne (i32.load8_u (i32.add (local.get $at) (local.get $i)))
                  (i32.load8_u (i32.add (local.get $text) (local.get $i))))
        (then (return (i32.const 0))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $length))))
    (i32.const 1))

  ;; The place behind the last time that a text stands between a place and the end; 0 where it does not.
  (func $behind (param $from i32) (param $text i32) (param $length i32) (result i32)
    (local $at i32)
    (local.set $at (i32.sub (global.get $end) (local.get $length)))
    (block $none
      (loop $next
        (br_if $none (i32.lt_s (local.get $at) (local.get $from)))
        (if (call $is (local.get $at) (local.get $text) (local.get $length))
          (then (return (i32.add (local.get $at) (local.get $length)))))
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (br $next)))
    (i32.const 0))

  ;; How many bytes of a number stand here.
  (func $digits (param $at i32) (result i32)
    (local $length i32) (local $byte i32)
    (block $done
      (loop $next
        (local.set $byte (i32.load8_u (i32.add (local.get $at) (local.get $length))))
        (br_if $done
          (i32.eqz
            (i32.or
              (i32.or (i32.lt_u (i32.sub (local.get $byte) (i32.const 48)) (i32.const 10)) ;; 0 to 9
                      (i32.eq (local.get $byte) (i32.const 46)))                           ;; .
              (i32.or (i32.eq (local.get $byte) (i32.const 101))                           ;; e
                      (i32.or (i32.eq (local.get $byte) (i32.const 45))                    ;; -
                              (i32.eq (local.get $byte) (i32.const 43)))))))               ;; +
        (local.set $length (i32.add (local.get $length) (i32.const 1)))
        (br $next)))
    (local.get $length))

  ;; How many bytes stand here before a quote; 0 where there is one that a path would have to write otherwise.
  (func $word (param $at i32) (result i32)
    (local $length i32) (local $byte i32)
    (loop $next
      (local.set $byte (i32.load8_u (i32.add (local.get $at) (local.get $length))))
      (if (i32.eq (local.get $byte) (i32.const 34)) (then (return (local.get $length))))            ;; "
      (if (i32.or (i32.eq (local.get $byte) (i32.const 92))                                         ;; \
                  (i32.or (i32.eq (local.get $byte) (i32.const 47))                                 ;; /
                          (i32.eq (local.get $byte) (i32.const 126))))                              ;; ~
        (then (return (i32.const 0))))
      (local.set $length (i32.add (local.get $length) (i32.const 1)))
      (br_if $next (i32.le_u (local.get $length) (i32.const 64))))
    (i32.const 0))

  (func $put (param $from i32) (param $length i32)
    (memory.copy (global.get $out) (local.get $from) (local.get $length))
    (global.set $out (i32.add (global.get $out) (local.get $length))))

  ;; The place of the answer in the upper half, its length in the lower.
  (func (export "reduce") (param $at i32) (param $length i32) (result i64)
    (local $output i32) (local $amount i32) (local $digits i32) (local $category i32) (local $word i32)
    (global.set $end (i32.add (local.get $at) (local.get $length)))
    ;; A transition ends with its type.
    (if (i32.eqz (call $is (i32.sub (global.get $end) (i32.const 24)) (i32.const 48) (i32.const 24)))
      (then (return (i64.const 0x5000000002))))
    (local.set $output (call $behind (local.get $at) (i32.const 0) (i32.const 10)))
    (if (i32.eqz (local.get $output)) (then (return (i64.const 0x5000000002))))
    (local.set $amount (call $behind (local.get $output) (i32.const 16) (i32.const 9)))
    (if (i32.eqz (local.get $amount)) (then (return (i64.const 0x5000000002))))
    (local.set $digits (call $digits (local.get $amount)))
    (local.set $category (call $behind (local.get $output) (i32.const 32) (i32.const 12)))
    (if (local.get $category) (then (local.set $word (call $word (local.get $category)))))
    (if (i32.or (i32.eqz (local.get $word))
                (i32.gt_u (i32.sub (local.get $digits) (i32.const 1)) (i32.const 63)))
      (then (return (i64.const 0x6000000054))))
    (call $put (i32.const 192) (i32.const 16))
    (call $put (local.get $category) (local.get $word))
    (call $put (i32.const 208) (i32.const 34))
    (call $put (local.get $category) (local.get $word))
    (call $put (i32.const 256) (i32.const 14))
    (call $put (local.get $amount) (local.get $digits))
    (call $put (i32.const 272) (i32.const 2))
    (i64.or (i64.const 0x20000000000)
            (i64.extend_i32_u (i32.sub (global.get $out) (i32.const 512))))))
