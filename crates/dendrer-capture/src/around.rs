//! Which addresses a program and its children ask without asking the server: a look at their sockets, again and again.
//!
//! Reads `/proc` of Linux, as proc(5) describes it. A connection that is shorter than the time between two looks may be missed,
//! and so may a process whose parent ended between two looks: the list is what was seen and not all that was.
//!
//! Rule: nothing of the program waits for a look.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dendrer_object::Value;

/// The least time between two looks.
const EVERY: Duration = Duration::from_millis(20);

/// How many times as long as the look before it the time between two looks is: looks take a part of a core at most.
const SPARES: u32 = 40;

/// After how many looks a socket that is in no table is looked for at each 16th one alone: one of another kind never is.
const TRIED: u32 = 100;

/// An address that a program asked without asking the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AroundPeer {
    /// The address and the port.
    pub peer: String,
    /// How many connections to it were seen.
    pub connections: u64,
}

impl AroundPeer {
    /// The peer as a record has it.
    pub(crate) fn to_value(&self) -> Value {
        let peer = Value::from(self.peer.as_str());
        Value::record([("connections", Value::from(self.connections)), ("peer", peer)])
    }
}

/// A look at the sockets of a program, until it ends.
#[derive(Debug)]
pub struct AroundWatch {
    stop: Sender<()>,
    looking: JoinHandle<Option<Vec<AroundPeer>>>,
}

impl AroundWatch {
    /// Begins to look at a process and its children. `server` is the address that they are to ask. `None` without a thread.
    pub fn start(process: u32, server: SocketAddr) -> Option<AroundWatch> {
        let (stop, stopped) = channel();
        let look = move || {
            let mut sockets = Sockets::new(process, server);
            loop {
                let begun = Instant::now();
                sockets.look();
                match stopped.recv_timeout(EVERY.max(begun.elapsed() * SPARES)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return sockets.peers(),
                }
            }
        };
        let looking = thread::Builder::new().name("dendrer-around".to_owned()).spawn(look).ok()?;
        Some(AroundWatch { stop, looking })
    }

    /// Ends it, and returns the peers by their address; `None` if this system does not show the sockets of a process.
    pub fn end(self) -> Option<Vec<AroundPeer>> {
        drop(self.stop);
        self.looking.join().ok().flatten()
    }
}

/// A line of a table of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Socket {
    inode: u64,
    local: SocketAddr,
    /// `None` if it waits for connections.
    peer: Option<SocketAddr>,
}

/// The sockets that were seen.
struct Sockets {
    server: SocketAddr,
    /// Processes of the tree that are alive, with the time at which each began: a number is used again.
    tree: BTreeMap<u32, u64>,
    seen: BTreeSet<Socket>,
    /// Open sockets, with how many looks there were for each in the tables; `None` once it was found.
    open: BTreeMap<u64, Option<u32>>,
    is_shown: bool,
}

impl Sockets {
    fn new(process: u32, server: SocketAddr) -> Sockets {
        let begun = os::begun(process);
        let tree = begun.into_iter().map(|begun| (process, begun)).collect();
        Sockets { server, tree, seen: BTreeSet::new(), open: BTreeMap::new(), is_shown: begun.is_some() }
    }

    fn look(&mut self) {
        // A child whose parent has ended stays in the tree.
        self.tree.retain(|process, begun| os::begun(*process) == Some(*begun));
        let mut open: Vec<u32> = self.tree.keys().copied().collect();
        while let Some(process) = open.pop() {
            for child in os::children(process) {
                if let (false, Some(begun)) = (self.tree.contains_key(&child), os::begun(child)) {
                    self.tree.insert(child, begun);
                    open.push(child);
                }
            }
        }
        let mut tables: BTreeMap<String, Vec<Socket>> = BTreeMap::new();
        let mut before = std::mem::take(&mut self.open);
        for process in self.tree.keys() {
            let own = os::inodes(*process);
            let mut is_due = false;
            for inode in &own {
                let looks = before.remove(inode).unwrap_or(Some(0)).map(|looks| looks + 1);
                let looks = *self.open.entry(*inode).or_insert(looks);
                is_due |= looks.is_some_and(|looks| looks < TRIED || looks % 16 == 0);
            }
            let Some(network) = os::network(*process).filter(|_| is_due) else { continue };
            let table = tables.entry(network).or_insert_with(|| os::table(*process));
            for socket in table.iter().filter(|socket| own.contains(&socket.inode)) {
                self.open.insert(socket.inode, None);
                self.seen.insert(*socket);
            }
        }
    }

    /// The peers outside the tree: none that the program serves, none of its own processes.
    fn peers(&self) -> Option<Vec<AroundPeer>> {
        let serves: BTreeSet<u16> =
            self.seen.iter().filter(|one| one.peer.is_none()).map(|one| one.local.port()).collect();
        let own: BTreeSet<SocketAddr> = self.seen.iter().map(|one| one.local).collect();
        let mut counts: BTreeMap<SocketAddr, u64> = BTreeMap::new();
        for socket in &self.seen {
            let Some(peer) = socket.peer else { continue };
            let is_own = own.contains(&peer) || peer.ip().is_loopback() && serves.contains(&peer.port());
            if peer != self.server && !is_own && !serves.contains(&socket.local.port()) {
                *counts.entry(peer).or_default() += 1;
            }
        }
        let peer =
            |(peer, connections): (SocketAddr, u64)| AroundPeer { peer: peer.to_string(), connections };
        self.is_shown.then(|| counts.into_iter().map(peer).collect())
    }
}

#[cfg(target_os = "linux")]
mod os {
    use std::collections::BTreeSet;
    use std::fs;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    use crate::around::Socket;

    /// The state of a socket that waits for connections (`TCP_LISTEN`).
    const LISTENS: &str = "0A";

    /// The time at which a process began, in ticks since the system did; `None` if there is no such process.
    pub(super) fn begun(process: u32) -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name of the program comes second, and may have blanks and brackets. The time is the 22nd.
        let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
        let state = rest.next()?;
        if matches!(state, "Z" | "X") { None } else { rest.nth(18)?.parse().ok() }
    }

    /// The processes that the threads of a process started.
    pub(super) fn children(process: u32) -> Vec<u32> {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let listed = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        listed.flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<u32>>()).collect()
    }

    /// The network namespace of a process.
    pub(super) fn network(process: u32) -> Option<String> {
        let name = fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// The inodes of the sockets that a process has open.
    pub(super) fn inodes(process: u32) -> BTreeSet<u64> {
        let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let inode = |name: &str| name.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
        open.filter_map(|one| inode(fs::read_link(one.path()).ok()?.to_str()?)).collect()
    }

    /// The connections over TCP in the network of a process.
    pub(super) fn table(process: u32) -> Vec<Socket> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
        let lines = read("tcp") + &read("tcp6");
        lines.lines().filter_map(socket).collect()
    }

    /// Reads a line: number, local address, other address, state, and as the tenth the inode.
    pub(super) fn socket(line: &str) -> Option<Socket> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, local, peer, state, _, _, _, _, _, inode, ..] = words.as_slice() else { return None };
        let inode = inode.parse().ok().filter(|inode| *inode > 0)?;
        let peer = if *state == LISTENS { None } else { Some(address(peer)?) };
        Some(Socket { inode, local: address(local)?, peer })
    }

    /// Reads an address: words of 32 bits in the order of this machine, a colon, and the port. One that holds an address of
    /// version 4 is that address.
    fn address(text: &str) -> Option<SocketAddr> {
        let (address, port) = text.split_once(':')?;
        let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
        let ip = match address.len() {
            8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
            32 => {
                let words = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
                IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?)).to_canonical()
            }
            _ => return None,
        };
        Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    use std::collections::BTreeSet;

    use crate::around::Socket;

    pub(super) fn begun(_: u32) -> Option<u64> {
        None
    }

    pub(super) fn children(_: u32) -> Vec<u32> {
        Vec::new()
    }

    pub(super) fn network(_: u32) -> Option<String> {
        None
    }

    pub(super) fn inodes(_: u32) -> BTreeSet<u64> {
        BTreeSet::new()
    }

    pub(super) fn table(_: u32) -> Vec<Socket> {
        Vec::new()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn lines_of_the_tables_are_read() {
        let line = "   1: 0100007F:1F90 2A7100CB:01BB 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000 20 4 30 10 -1";
        let found = os::socket(line).unwrap();
        assert_eq!((found.inode, found.local.to_string().as_str()), (4711, "127.0.0.1:8080"));
        assert_eq!(found.peer.unwrap().to_string(), "203.0.113.42:443");
        let line6 = line
            .replace("0100007F", "0000000000000000FFFF00000100007F")
            .replace("2A7100CB", "B80D0120000000000000000001000000");
        let found = os::socket(&line6).unwrap();
        assert_eq!(found.local.to_string(), "127.0.0.1:8080");
        assert_eq!(found.peer.unwrap().to_string(), "[2001:db8::1]:443");
        assert_eq!(os::socket(&line.replace(" 01 ", " 0A ")).unwrap().peer, None);
        for bad in
            ["", "sl local rem st", &line.replace("4711", "0"), &line.replace("1F90", "zz"), &line[..40]]
        {
            assert_eq!(os::socket(bad), None, "{bad}");
        }
    }

    #[test]
    fn peers_are_those_that_the_program_asks_and_does_not_serve() {
        let server: SocketAddr = "127.0.0.1:9000".parse().unwrap();
        let mut sockets = Sockets::new(std::process::id(), server);
        let mut add = |inode, local: &str, peer: Option<&str>| {
            let peer = peer.map(|peer| peer.parse().unwrap());
            sockets.seen.insert(Socket { inode, local: local.parse().unwrap(), peer });
        };
        add(1, "127.0.0.1:40000", Some("127.0.0.1:9000"));
        add(2, "10.0.0.1:40001", Some("203.0.113.7:443"));
        add(3, "10.0.0.1:40002", Some("203.0.113.7:443"));
        // It serves 8080, and one of its own processes asks it.
        add(4, "0.0.0.0:8080", None);
        add(5, "10.0.0.1:8080", Some("198.51.100.1:50000"));
        add(6, "127.0.0.1:40003", Some("127.0.0.1:8080"));
        let found = sockets.peers().unwrap();
        assert_eq!(found, [AroundPeer { peer: "203.0.113.7:443".to_owned(), connections: 2 }]);
    }
}
