//! Bodies as they were before they were compressed.

use std::io::Read;

use dendrer_object::json::VALUE_SIZE_MAX;
use dendrer_wire::inflate::Frames;

/// Why a body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// It has an encoding that is not known.
    Encoding(String),
    /// It does not inflate.
    Damaged,
    /// It inflates to too much.
    TooLarge,
}

impl BodyFault {
    /// A word for the record.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            BodyFault::Encoding(_) => "encoding_unknown",
            BodyFault::Damaged => "not_inflated",
            BodyFault::TooLarge => "too_large",
        }
    }
}

/// How many encodings are taken off: a body can be made that is as large after each of thousands.
const ENCODINGS_MAX: usize = 8;

/// Takes the encodings of a body off, the last one first (RFC 9110 8.4).
pub(crate) fn plain(bytes: &[u8], encoding: Option<&str>) -> Result<Vec<u8>, BodyFault> {
    let names = encoding.unwrap_or_default().split(',').map(|name| name.trim().to_ascii_lowercase());
    let names: Vec<String> = names.filter(|name| !name.is_empty() && name != "identity").collect();
    if names.len() > ENCODINGS_MAX {
        return Err(BodyFault::Encoding(format!("{} encodings", names.len())));
    }
    let mut body = bytes.to_vec();
    for name in names.iter().rev() {
        body = match name.as_str() {
            "gzip" | "x-gzip" => all(flate2::read::MultiGzDecoder::new(&*body)),
            "deflate" => all(flate2::read::ZlibDecoder::new(&*body))
                .or_else(|_| all(flate2::read::DeflateDecoder::new(&*body))),
            "br" => all(brotli_decompressor::Decompressor::new(&*body, 4096)),
            "zstd" => all(Frames::new(&*body)),
            _ => return Err(BodyFault::Encoding(name.clone())),
        }?;
    }
    Ok(body)
}

fn all(mut source: impl Read) -> Result<Vec<u8>, BodyFault> {
    let mut bytes = Vec::new();
    let read = source.by_ref().take(VALUE_SIZE_MAX as u64 + 1).read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() > VALUE_SIZE_MAX => Err(BodyFault::TooLarge),
        Ok(_) => Ok(bytes),
        Err(_) => Err(BodyFault::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn encodings_are_taken_off_in_their_order() {
        assert_eq!(plain(b"as it is", None).unwrap(), b"as it is");
        assert_eq!(plain(b"as it is", Some("identity")).unwrap(), b"as it is");
        assert_eq!(plain(&gzip(b"once"), Some("gzip")).unwrap(), b"once");
        assert_eq!(plain(&gzip(&gzip(b"twice")), Some("gzip, GZIP")).unwrap(), b"twice");
        let many = ["gzip"; 9].join(",");
        assert_eq!(plain(b"x", Some(&many)), Err(BodyFault::Encoding("9 encodings".to_owned())));
        assert_eq!(plain(b"x", Some("compress")), Err(BodyFault::Encoding("compress".to_owned())));
    }

    #[test]
    fn a_bomb_and_a_cut_body_are_refused() {
        let bomb = gzip(&vec![0; 80 << 20]);
        assert_eq!(plain(&bomb, Some("gzip")), Err(BodyFault::TooLarge));
        assert_eq!(plain(&gzip(b"cut off")[..12], Some("gzip")), Err(BodyFault::Damaged));
        assert_eq!(plain(b"no stream", Some("br")), Err(BodyFault::Damaged));
        assert_eq!(plain(b"no frame", Some("zstd")), Err(BodyFault::Damaged));
    }
}
