//! `dendrer init`

use std::path::Path;

use dendrer::recorder::{World, begin_log};
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::{Store, StoreInfo};
use dendrer_object::{StoreId, Value};
use dendrer_view::{document, quote};
use ring::rand::{SecureRandom, SystemRandom};

use crate::args::{Global, Init};
use crate::failure::{Failure, Result};
use crate::open::{self, STORE_DIR};
use crate::out::Out;
use crate::{files, keys};

pub(crate) fn run(global: &Global, args: &Init, out: &mut Out) -> Result {
    let dir = Path::new(args.dir.as_deref().or(global.store.as_deref()).unwrap_or("."));
    let path = if dir.ends_with(STORE_DIR) { dir.to_owned() } else { dir.join(STORE_DIR) };
    if path.join("store.json").exists() {
        return Err(Failure::new("E0110", format!("{} is a store already", path.display()))
            .note("nothing was changed"));
    }
    // Whoever goes on with the restore has a store.
    if let Some(failure) = open::cut_off(files::dir_of(&path)) {
        return Err(failure.note("nothing was made"));
    }
    // Whoever copies the store, or hands it over, must not hand over its key.
    let key_dir = |file: &str| Path::new(file).parent().map(std::path::absolute);
    if let Some(Ok(near)) = global.key.as_deref().and_then(key_dir)
        && std::path::absolute(&path).is_ok_and(|path| near.starts_with(path))
    {
        return Err(
            Failure::new("E0106", "the key of a store does not lie in the store").note("nothing was made")
        );
    }
    let mut id = [0; 16];
    SystemRandom::new().fill(&mut id).map_err(|_| Failure::new("E0801", "the system gives no randomness"))?;
    let id = StoreId(id);
    let (key, key_path) = keys::create(global.key.as_deref(), id)?;
    let verifier = key.verifier_key().clone();
    let made = || -> Result<()> {
        std::fs::create_dir_all(&path).map_err(|error| {
            Failure::new("E0801", format!("cannot make {}", path.display())).at("cause", error.to_string())
        })?;
        let mut store = Embedded::create(&path, StoreInfo::new(id, verifier.clone()), Options::write())?;
        begin_log(&mut store, &mut World::default())?;
        keys::sign(&mut store, Some(&key))?;
        Ok(Store::close(Box::new(store))?)
    };
    if let Err(failure) = made() {
        // A key without a store is litter that the next init would stumble over.
        let _ = std::fs::remove_file(&key_path);
        return Err(failure);
    }
    if !out.is_text() {
        out.document(&document(
            "init",
            [
                ("path", Value::from(path.display().to_string())),
                ("id", Value::from(id.to_string())),
                ("verifier", Value::from(verifier.to_string())),
                ("key", Value::from(key_path.display().to_string())),
            ],
        ))?;
        return Ok(0);
    }
    out.line(format!("created a store in {}", quote::escape(&path.display().to_string())))?;
    out.line(format!("verifier  {verifier}"))?;
    out.say(format!(
        "note: the key of its log is in {}, readable by you alone; it is not part of the store",
        quote::escape(&key_path.display().to_string())
    ));
    out.say("help: echo '{\"type\":\"observation.add\",\"intent\":{\"description\":\"hello\"}}' | dendrer commit --run first");
    Ok(0)
}
