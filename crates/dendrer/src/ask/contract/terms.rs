//! What a contract says, gathered so that whoever reads it can tell what could not have happened (dendrer paper 5.2 and
//! appendix G): what each type needs, who may write what, what must never be, and how that is known to be sound.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_kernel::contract::{Contract, Required};
use dendrer_kernel::expr::Expr;
use dendrer_kernel::ontology::{self, Class};
use dendrer_kernel::pack::Pack;
use dendrer_kernel::pack::members::Member;
use dendrer_kernel::pack::writes::{Sound, Written};
use dendrer_kernel::predicate::Predicate;
use dendrer_object::{Pointer, TypeName, Value};

/// What a contract says.
#[derive(Debug)]
pub struct ContractTerms<'p> {
    /// The pack.
    pub pack: &'p Pack,
    /// The types that it says anything of, in order of names.
    pub types: Vec<TypeTerms<'p>>,
    /// What must hold, and then what must have been done in time, in the order of the pack.
    pub never: Vec<Never<'p>>,
    /// The fields of the state, in order.
    pub fields: Vec<FieldTerms<'p>>,
    /// Members of the pack that stand in none of these, as they are.
    pub others: Vec<(&'p str, &'p Value)>,
}

/// What of a contract extensions added, each with what the extension is called.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    required: BTreeMap<(TypeName, Arc<str>), Arc<str>>,
    seeds: BTreeMap<(TypeName, Arc<str>), Arc<str>>,
    never: BTreeMap<String, Arc<str>>,
    fields: BTreeMap<String, Arc<str>>,
}

impl Marks {
    /// Notes what an extension added: all that stands in the one pack and not in the other.
    pub(super) fn note(&mut self, id: &Arc<str>, before: &Pack, after: &Pack) {
        for (name, contract) in &after.contracts.types {
            let old = before.contracts.types.get(name);
            let requires = |field: &str| {
                old.is_some_and(|old| old.required.iter().any(|required| *required.name == *field))
            };
            let fields = contract.required.iter().map(|required| &required.name);
            for field in fields.filter(|field| !requires(field)) {
                self.required.insert((name.clone(), Arc::clone(field)), Arc::clone(id));
            }
            let seeds = contract.seeds.iter().filter(|seed| !old.is_some_and(|old| old.seeds.contains(seed)));
            for seed in seeds {
                self.seeds.insert((name.clone(), Arc::clone(seed)), Arc::clone(id));
            }
        }
        for declared in after.declared().filter(|one| before.predicate(one.predicate.name()).is_none()) {
            self.never.insert(declared.predicate.name().to_owned(), Arc::clone(id));
        }
        let declares = |name: &str| before.fields.iter().any(|field| *field.name == *name);
        for field in after.fields.iter().filter(|field| !declares(&field.name)) {
            self.fields.insert(field.name.to_string(), Arc::clone(id));
        }
    }
}

/// What is said of a type.
#[derive(Debug)]
pub struct TypeTerms<'p> {
    /// The type.
    pub name: TypeName,
    /// What it means, or what its contract is for.
    pub words: Option<&'p str>,
    /// Who may write it.
    pub authors: &'static str,
    /// Whether the pack registers it.
    pub registered: bool,
    /// Whether it has a contract.
    pub has_contract: bool,
    /// What the state before must have.
    pub needs: Vec<Need<'p>>,
    /// What a model may say it looked at besides.
    pub advisory: &'p [Arc<str>],
    /// What the rules for it write.
    pub writes: Vec<Written>,
}

/// A field that must stand in the state before.
#[derive(Debug)]
pub struct Need<'p> {
    /// The field.
    pub required: &'p Required,
    /// Whether the justification of an import is bound to its value.
    pub is_seed: bool,
    /// How an import compares it.
    pub import: &'p str,
    /// The extension since which it is required.
    pub since: Option<&'p str>,
    /// The extension since which the justification is bound to it.
    pub seed_since: Option<&'p str>,
}

/// What must not be.
#[derive(Debug)]
pub struct Never<'p> {
    /// The predicate.
    pub predicate: &'p Predicate,
    /// What it is for.
    pub words: Option<&'p str>,
    /// How it is known that it cannot recover.
    pub sound: Sound,
    /// What it reads, each with the types whose contract requires it.
    pub reads: Vec<(Pointer, Vec<TypeName>)>,
    /// The extension since which it is looked for.
    pub since: Option<&'p str>,
}

/// A field of the state.
#[derive(Debug)]
pub struct FieldTerms<'p> {
    /// Its name.
    pub name: &'p str,
    /// What it means.
    pub words: Option<&'p str>,
    /// How many decimals its number is kept to.
    pub decimals: Option<u8>,
    /// What it begins with where that is the same in every run.
    pub begins: Option<Value>,
    /// What it begins with, as the pack writes it.
    pub init: Option<&'p Value>,
    /// The writes that rules make, each with the types of the rule; `None` for every type.
    pub writes: Vec<(Written, Option<Vec<TypeName>>)>,
    /// The types and authors that may write it from stage 2 on; any, if none is named.
    pub writers: &'p [Arc<str>],
    /// The extension that declared it.
    pub since: Option<&'p str>,
}

/// Who may write a type.
fn authors(name: &TypeName) -> &'static str {
    let class = ontology::TYPES.iter().find(|(known, _)| *known == name.as_str()).map(|(_, class)| *class);
    match class {
        Some(Class::System) => "the kernel",
        Some(Class::Governance) => "the institution",
        Some(Class::Runtime) if name.as_str() == "policy.decision" => "the runtime and users",
        Some(Class::Runtime) => "the runtime",
        Some(Class::Agent) | None => "agents, the runtime and users",
    }
}

/// Gathers what a contract says, with what of it extensions added.
pub fn terms<'p>(pack: &'p Pack, marks: &'p Marks) -> ContractTerms<'p> {
    let writes = pack.writes();
    let contracted = pack.contracts.types.keys().cloned();
    let for_all = pack.rules_for_all();
    let ruled = pack.governed().into_iter().filter(|(_, says)| says.registered || says.rules != for_all);
    let names: BTreeSet<TypeName> = contracted.chain(ruled.map(|(name, _)| name)).collect();
    let others = pack.value().as_object().into_iter().flat_map(|members| members.iter());
    ContractTerms {
        pack,
        types: names.into_iter().map(|name| of_type(pack, name, &writes, marks)).collect(),
        never: pack.declared().map(|declared| never(pack, declared, marks)).collect(),
        fields: pack.fields.iter().map(|field| of_field(pack, field, &writes, marks)).collect(),
        others: others
            .filter(|(name, _)| Member::find(name).is_none_or(|member| !member.in_terms))
            .map(|(name, value)| (&**name, value))
            .collect(),
    }
}

fn of_type<'p>(pack: &'p Pack, name: TypeName, writes: &[Written], marks: &'p Marks) -> TypeTerms<'p> {
    let contract = pack.contracts.types.get(&name);
    let needs = contract
        .into_iter()
        .flat_map(|contract| contract.required.iter().map(move |required| (contract, required)));
    let need = |(contract, required): (&'p Contract, &'p Required)| {
        let place = (name.clone(), Arc::clone(&required.name));
        Need {
            required,
            is_seed: contract.seeds.contains(&required.name),
            import: contract.rule(&required.name),
            since: marks.required.get(&place).map(|id| &**id),
            seed_since: marks.seeds.get(&place).map(|id| &**id),
        }
    };
    let needs: Vec<Need<'p>> = needs.map(need).collect();
    let is_asked = ontology::asks_rules(&name);
    let applies = |rule: usize| is_asked && pack.rule_types(rule).is_none_or(|types| types.contains(&name));
    TypeTerms {
        words: contract
            .and_then(|contract| contract.words.as_deref())
            .or_else(|| pack.types.get(&name).and_then(Option::as_deref)),
        authors: authors(&name),
        registered: pack.types.contains_key(&name),
        has_contract: contract.is_some(),
        needs,
        advisory: contract.map_or(&[], |contract| &contract.advisory),
        writes: writes.iter().filter(|write| applies(write.rule)).cloned().collect(),
        name,
    }
}

fn never<'p>(pack: &'p Pack, declared: &'p dendrer_kernel::pack::Declared, marks: &'p Marks) -> Never<'p> {
    let requires = |place: &Pointer| {
        // Who looks at all of the state is not covered by what requires a part of it.
        let some = (!place.as_str().is_empty()).then_some(&pack.contracts.types);
        let types = some.into_iter().flatten().filter(|(_, contract)| {
            contract.required.iter().any(|field| Pointer::of(field.name.split('.')).overlaps(place))
        });
        types.map(|(name, _)| name.clone()).collect()
    };
    let predicate = &declared.predicate;
    let reads = predicate.expr().map_or(predicate.read_set(), Expr::read_set).iter();
    Never {
        predicate: &declared.predicate,
        words: declared.words.as_deref(),
        sound: pack.sound(&declared.predicate),
        reads: reads.map(|place| (place.clone(), requires(place))).collect(),
        since: marks.never.get(declared.predicate.name()).map(|id| &**id),
    }
}

fn of_field<'p>(
    pack: &'p Pack,
    field: &'p dendrer_kernel::pack::PackField,
    writes: &[Written],
    marks: &'p Marks,
) -> FieldTerms<'p> {
    // No rule is asked about what the kernel and the institution write, whatever it names.
    let asked = |types: &BTreeSet<TypeName>| {
        types.iter().filter(|name| ontology::asks_rules(name)).cloned().collect::<Vec<_>>()
    };
    let types = |rule: usize| pack.rule_types(rule).map(asked);
    FieldTerms {
        name: &field.name,
        words: field.words.as_deref(),
        decimals: field.decimals,
        begins: pack.fixed_init(&field.name),
        init: pack.value().get("state").and_then(|state| state.get(&field.name)?.get("init")),
        writes: writes
            .iter()
            .filter(|write| write.field == field.name)
            .map(|write| (write.clone(), types(write.rule)))
            .filter(|(_, types)| types.as_ref().is_none_or(|types| !types.is_empty()))
            .collect(),
        writers: &field.writers,
        since: marks.fields.get(&*field.name).map(|id| &**id),
    }
}
