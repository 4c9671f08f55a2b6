#!/usr/bin/env bash
# Builds the example modules of examples/modules into target/modules, with what the registries offer: risk.ts and tally.ts
# with AssemblyScript from npm, rust/ with Rust's standard library for wasm32. Where a toolchain cannot be had it says SKIPPED.
# Needs: npm; for rust/, the target wasm32-unknown-unknown of rustup, or on Debian the packages rustc-web and rust-web-src,
# which are unpacked into target/modules and not installed.
set -uo pipefail
cd "$(dirname "$0")/.."
out="$PWD/target/modules"
mkdir -p "$out"

skipped() { echo "SKIPPED: $1"; shift; rm -f "$@"; }

assemblyscript() {
  command -v npm >/dev/null || return 1
  [ -x "$out/node_modules/.bin/asc" ] ||
    npm install --silent --no-fund --no-audit --prefix "$out" assemblyscript@0.28.20 || return 1
  for name in risk tally; do
    "$out/node_modules/.bin/asc" "examples/modules/$name.ts" -O3 --runtime stub --use abort= -o "$out/$name-ts.wasm" ||
      return 1
  done
}

# Rust with the target that rustup has.
rust_target() {
  [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ] || return 1
  cargo build --quiet --release --manifest-path examples/modules/rust/Cargo.toml \
    --target wasm32-unknown-unknown --target-dir "$out/rust"
}

# Debian's Rust, unpacked, which builds its own standard library for the target.
rust_debian() {
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
  local debian="$out/debian" version std llvm
  if [ ! -x "$debian/usr/bin/rustc" ]; then
    version="$(apt-cache show rustc-web 2>/dev/null | sed -n 's/^Version: //p' | head -1)"
    if [ -z "$version" ]; then
      [ "$(id -u)" = 0 ] && apt-get update -qq || return 1
      version="$(apt-cache show rustc-web 2>/dev/null | sed -n 's/^Version: //p' | head -1)"
    fi
    [ -n "$version" ] || return 1
    std="libstd-rust-web-${version%.*}"
    llvm="$(apt-cache depends "$std=$version" | sed -n 's/.*Depends: \(libllvm[0-9]*\)$/\1/p' | head -1)"
    [ -n "$llvm" ] || return 1
    mkdir -p "$debian/packages"
    (cd "$debian/packages" &&
      apt-get download -qq "rustc-web=$version" "libstd-rust-web-dev=$version" "rust-web-src=$version" \
        "$std=$version" "$llvm" 2>/dev/null) || return 1
    # Of the sources, the library alone; they have everything else of Rust, too.
    for package in "$debian"/packages/*.deb; do
      dpkg-deb --fsys-tarfile "$package" |
        tar -x -C "$debian" --no-wildcards-match-slash --exclude './usr/src/*/src' --exclude './usr/src/*/vendor' \
          --exclude './usr/share' || return 1
    done
    rm -rf "$debian/packages"
  fi
  local linker
  linker="$(find "$(rustc --print sysroot)" -name rust-lld -type f | head -1)"
  [ -n "$linker" ] || linker="$(command -v wasm-ld)" || return 1
  RUSTC="$debian/usr/bin/rustc" RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker" \
    LD_LIBRARY_PATH="$debian/usr/lib/x86_64-linux-gnu" \
    cargo build --quiet --release --manifest-path examples/modules/rust/Cargo.toml -Zbuild-std=std,panic_abort \
    --target wasm32-unknown-unknown --target-dir "$out/rust"
}

assemblyscript || skipped "no AssemblyScript from npm: risk.ts and tally.ts were not built" "$out"/{risk,tally}-ts.wasm
if rust_target || rust_debian; then
  cp "$out/rust/wasm32-unknown-unknown/release/guest.wasm" "$out/rust.wasm"
else
  skipped "no Rust for wasm32: rust/ was not built" "$out/rust.wasm"
fi
ls -l "$out"/*.wasm 2>/dev/null
exit 0
