//! `dendrer contract extend`: adds to the contract of a run, with an approval.

use dendrer::change::extend::question::{ExtendQuestion, unreadable};
use dendrer::source::Asked as _;

use super::args::ContractExtend;
use crate::context::desk::CommandDesk;
use crate::context::packs::read_file;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

pub(super) fn run(global: &Global, args: &ContractExtend, out: &mut Out) -> Result {
    let text = String::from_utf8(read_file(&args.file)?);
    let signature = args.signature.as_deref().map(read_file).transpose()?;
    let question = ExtendQuestion {
        run: args.run.clone(),
        file: text.map_err(|_| unreadable(&args.file, &args.run, 1, "the text is not UTF-8"))?,
        effective_from: args.effective_from,
        approved_by: args.approved_by.clone(),
        signature: signature.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        dry_run: args.dry_run,
    };
    let mut desk = CommandDesk::new(global, out);
    desk.names("file", Some(&args.file));
    desk.names("approver_key", args.approver_key.as_deref());
    let asked = question.ask(&mut desk);
    drop(desk);
    out.answer(&asked?)
}
