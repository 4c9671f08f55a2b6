//! In how many lanes many messages are hashed side by side. Whatever is chosen, the digests are the same.
//!
//! The one module with `unsafe` in it: the library's own choice is right for most processors and not for those with AVX-512 and
//! without SHA extensions. They run slower for a while after each use of their widest registers, which costs the rest of
//! recording more than sixteen lanes save over eight: 18.5 us a step against 17.1. The narrower lanes have no safe way in.
//! Their presence is looked up at run time.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the one call below, whose only condition is checked where it stands")
)]

/// Hashes messages, each behind `prefix`.
pub(super) fn hash_many(prefix: &[u8], messages: &[&[u8]], digests: &mut [[u8; 32]]) {
    #[cfg(target_arch = "x86_64")]
    if slows_down_when_wide() && is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was looked up just now; nothing else is asked of the caller.
        return unsafe { tape_sha256::backends::avx2_8_slices(prefix, messages, digests) };
    }
    tape_sha256::hash_many_prefixed(prefix, messages, digests);
}

/// Tells whether the library would take the widest registers of a processor that came before SHA extensions did.
#[cfg(target_arch = "x86_64")]
fn slows_down_when_wide() -> bool {
    tape_sha256::backend() == "avx512-16" && !is_x86_feature_detected!("sha")
}
