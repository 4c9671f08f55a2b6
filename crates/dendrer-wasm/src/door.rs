//! The limits of a module, checked before anything of it is compiled.
//!
//! Every limit is a number of bytes, instructions or items, so the answer is the same on every machine. Sections are
//! judged as they come: what is refused is not read to its end.

use wasmparser::{
    Chunk, CompositeInnerType, ExportSectionReader, ExternalKind, FuncValidatorAllocations, FunctionBody,
    ImportSectionReader, MemorySectionReader, Operator, Parser, Payload, TableInit, TableSectionReader,
    TypeRef, TypeSectionReader, ValidPayload, Validator, WasmFeatures,
};

use crate::{
    ARITY_MAX, ITEMS_MAX, LOCALS_MAX, MEMORY_BEGIN_MAX, MODULE_SIZE_MAX, ModuleRefused, NESTING_MAX,
    NODES_MAX, TABLE_SIZE_MAX, TABLES_MAX,
};

/// WebAssembly 2.0 without vectors, as compilers write it. Nothing that has threads, or leaves a result to the processor.
const FEATURES: WasmFeatures = WasmFeatures::MUTABLE_GLOBAL
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::FLOATS);

/// How many bytes a page of memory has.
const PAGE: u64 = 64 << 10;

/// Tells whether these bytes may be a module at all, and have what a caller needs: `memory`, `alloc` and the function
/// `entry`. Their types are checked where they are called.
pub(crate) fn inspect(bytes: &[u8], entry: &str) -> Result<(), ModuleRefused> {
    if bytes.len() > MODULE_SIZE_MAX {
        // A reader of a longer file stops after the first byte too many.
        return Err(ModuleRefused::new(format!("it has more than {MODULE_SIZE_MAX} bytes")));
    }
    let mut door = Door { validator: Validator::new_with_features(FEATURES), ..Door::default() };
    let mut parser = Parser::new(0);
    parser.set_features(FEATURES);
    let mut at = 0;
    loop {
        let (consumed, payload) = match parser.parse(&bytes[at..], true).map_err(malformed)? {
            Chunk::Parsed { consumed, payload } => (consumed, payload),
            // There is no more to come.
            Chunk::NeedMoreData(_) => return Err(ModuleRefused::at(at, "the module ends early")),
        };
        at += consumed;
        let ended = matches!(payload, Payload::End(_));
        door.pass(&payload)?;
        if ended {
            break;
        }
    }
    if at != bytes.len() {
        return Err(ModuleRefused::at(at, "something follows the end of the module"));
    }
    for name in ["memory", "alloc", entry] {
        if !door.exports.iter().any(|export| export == name) {
            return Err(ModuleRefused::new(format!("it does not export \"{name}\"")));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Door {
    validator: Validator,
    allocations: FuncValidatorAllocations,
    nodes: usize,
    locals: u64,
    /// Those that a caller may ask for.
    exports: Vec<String>,
}

impl Door {
    fn pass(&mut self, payload: &Payload<'_>) -> Result<(), ModuleRefused> {
        self.allow(payload)?;
        if let ValidPayload::Func(to_validate, body) = self.validator.payload(payload).map_err(malformed)? {
            let mut validator = to_validate.into_validator(std::mem::take(&mut self.allocations));
            validator.validate(&body).map_err(malformed)?;
            self.allocations = validator.into_allocations();
        }
        Ok(())
    }

    /// Refuses sections that the format would allow, and this door does not.
    fn allow(&mut self, payload: &Payload<'_>) -> Result<(), ModuleRefused> {
        match payload {
            Payload::Version { encoding: wasmparser::Encoding::Component, range, .. } => {
                refused(range.start, "it is a component, and a core module is what is run")
            }
            Payload::TypeSection(section) => types(section),
            Payload::ImportSection(section) => imports(section),
            Payload::FunctionSection(section) => items("functions", section.count(), section.range().start),
            Payload::TableSection(section) => tables(section),
            Payload::MemorySection(section) => memories(section),
            Payload::GlobalSection(section) => items("globals", section.count(), section.range().start),
            Payload::ExportSection(section) => self.export(section),
            Payload::StartSection { range, .. } => {
                refused(range.start, "it has a start function, which would run before it is asked anything")
            }
            Payload::ElementSection(section) => {
                items("segments of elements", section.count(), section.range().start)
            }
            Payload::DataSection(section) => {
                items("segments of data", section.count(), section.range().start)
            }
            Payload::CodeSectionEntry(body) => self.count(body),
            _ => Ok(()),
        }
    }

    fn export(&mut self, section: &ExportSectionReader<'_>) -> Result<(), ModuleRefused> {
        items("exports", section.count(), section.range().start)?;
        for export in section.clone() {
            let export = export.map_err(malformed)?;
            if matches!(export.kind, ExternalKind::Func | ExternalKind::Memory) {
                self.exports.push(export.name.to_owned());
            }
        }
        Ok(())
    }

    /// Counts local variables and instructions.
    fn count(&mut self, body: &FunctionBody<'_>) -> Result<(), ModuleRefused> {
        let start = body.range().start;
        for local in body.get_locals_reader().map_err(malformed)? {
            self.locals += u64::from(local.map_err(malformed)?.0);
            if self.locals > LOCALS_MAX {
                let why = format!("its functions have more than {LOCALS_MAX} local variables");
                return Err(ModuleRefused::at(start, why));
            }
        }
        let mut depth = 0usize;
        for operator in body.get_operators_reader().map_err(malformed)? {
            self.nodes += 1;
            match operator.map_err(malformed)? {
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => depth += 1,
                Operator::End => depth = depth.saturating_sub(1),
                Operator::BrTable { targets } => self.nodes += targets.len() as usize,
                _ => {}
            }
            if depth > NESTING_MAX {
                let why = format!("a function has more than {NESTING_MAX} blocks inside each other");
                return Err(ModuleRefused::at(start, why));
            }
            if self.nodes > NODES_MAX {
                return Err(ModuleRefused::at(start, format!("it has more than {NODES_MAX} instructions")));
            }
        }
        Ok(())
    }
}

fn types(section: &TypeSectionReader<'_>) -> Result<(), ModuleRefused> {
    items("types", section.count(), section.range().start)?;
    for group in section.clone().into_iter_with_offsets() {
        let (at, group) = group.map_err(malformed)?;
        for kind in group.types() {
            let CompositeInnerType::Func(function) = &kind.composite_type.inner else {
                return refused(at, "it has a type that is no function");
            };
            if function.params().len().max(function.results().len()) > ARITY_MAX {
                return refused(at, format!("a function has more than {ARITY_MAX} parameters or results"));
            }
        }
    }
    Ok(())
}

fn imports(section: &ImportSectionReader<'_>) -> Result<(), ModuleRefused> {
    let Some(import) = section.clone().into_iter_with_offsets().next() else { return Ok(()) };
    let (at, import) = import.map_err(malformed)?;
    let kind = match import.ty {
        TypeRef::Func(_) => "function",
        TypeRef::Table(_) => "table",
        TypeRef::Memory(_) => "memory",
        TypeRef::Global(_) => "global",
        TypeRef::Tag(_) => "tag",
    };
    let (name, module) = (cut(import.name), cut(import.module));
    let what = format!("it imports the {kind} \"{name}\" of \"{module}\"");
    refused(at, format!("{what}, and a module is given nothing but its input"))
}

fn tables(section: &TableSectionReader<'_>) -> Result<(), ModuleRefused> {
    if section.count() > TABLES_MAX {
        return refused(section.range().start, format!("it has more than {TABLES_MAX} tables"));
    }
    for table in section.clone().into_iter_with_offsets() {
        let (at, table) = table.map_err(malformed)?;
        if table.ty.initial > TABLE_SIZE_MAX || !matches!(table.init, TableInit::RefNull) {
            let why = format!("a table has more than {TABLE_SIZE_MAX} elements, or sets them itself");
            return refused(at, why);
        }
    }
    Ok(())
}

fn memories(section: &MemorySectionReader<'_>) -> Result<(), ModuleRefused> {
    const PAGES_MAX: u64 = MEMORY_BEGIN_MAX / PAGE;
    for memory in section.clone().into_iter_with_offsets() {
        let (at, memory) = memory.map_err(malformed)?;
        if memory.shared || memory.memory64 {
            return refused(at, "its memory is shared, or has addresses of 64 bits");
        }
        if memory.initial > PAGES_MAX {
            let pages = memory.initial;
            return refused(
                at,
                format!("its memory begins with {pages} pages, and {PAGES_MAX} are the most"),
            );
        }
    }
    Ok(())
}

fn refused(at: usize, why: impl Into<String>) -> Result<(), ModuleRefused> {
    Err(ModuleRefused::at(at, why))
}

fn items(what: &str, count: u32, at: usize) -> Result<(), ModuleRefused> {
    match count > ITEMS_MAX {
        true => Err(ModuleRefused::at(at, format!("it has {count} {what}, and {ITEMS_MAX} are the most"))),
        false => Ok(()),
    }
}

fn malformed(error: wasmparser::BinaryReaderError) -> ModuleRefused {
    // The expected and the found words come as lists, an item a line.
    let words: Vec<&str> = error.message().split_whitespace().collect();
    ModuleRefused::at(error.offset(), words.join(" ").replace("[ ", "[").replace(", ]", "]"))
}

/// Cuts a name for a message. The printer of the message escapes all of it.
fn cut(name: &str) -> String {
    name.chars().take(64).collect()
}
