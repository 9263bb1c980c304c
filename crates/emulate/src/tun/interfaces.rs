use std::fs;
use std::io;
use std::net::Ipv4Addr;

use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::rule::RuleAction;
use rtnetlink::{AddressMessageBuilder, Error, Handle, LinkUnspec, RouteMessageBuilder};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::space::Inside;

/// The interface of one end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    /// The path's number, from 1: the third byte of its addresses.
    pub(super) number: u8,
    pub(super) address: Ipv4Addr,
}

/// Bits that the addresses of a path have in common.
const PREFIX: u8 = 24;
/// The interfaces' MTU. A link may have a smaller one, which its model applies.
const MTU: u16 = 1500;
/// Packets that a device queues until they are read.
const DEVICE_QUEUE: u32 = 10_000;
/// The routes of path n are in table TABLES + n, and the rule that leads there has that priority.
const TABLES: u32 = 1_000;

impl Interface {
    /// The address of one end of path `number`: `end` is 1 for the client, 2 for the server.
    pub(super) fn address(number: u8, end: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, number, end)
    }

    /// Makes a TUN device for path `number` in the namespace, and gives it its address. It is up.
    pub(super) fn make(
        inside: &Inside,
        name: &str,
        number: u8,
        end: u8,
    ) -> io::Result<(SyncDevice, Interface)> {
        let device = DeviceBuilder::new().name(name).mtu(MTU).build_sync()?;
        device.set_nonblocking(true)?;
        let address = Interface::address(number, end);
        let interface =
            Interface { name: name.to_owned(), index: device.if_index()?, number, address };
        inside.wait_for(interface.bring_up(&inside.netlink))?;
        Ok((device, interface))
    }

    /// Routes all destinations through it: in a table for packets from its address, and in the main table, where the
    /// path with the lowest number comes first.
    pub(super) async fn add_routes(&self, netlink: &Handle) -> Result<(), Error> {
        let everywhere = || RouteMessageBuilder::<Ipv4Addr>::new().output_interface(self.index);
        let number = u32::from(self.number);
        let own = everywhere().table_id(TABLES + number).build();
        netlink.route().add(own).replace().execute().await?;
        let main = everywhere().priority(number).build();
        netlink.route().add(main).replace().execute().await
    }

    /// Makes packets from its address use its table.
    pub(super) async fn add_rule(&self, netlink: &Handle) -> Result<(), Error> {
        let table = TABLES + u32::from(self.number);
        let rule = netlink.rule().add().v4().source_prefix(self.address, 32);
        rule.table_id(table).priority(table).action(RuleAction::ToTable).execute().await
    }

    /// Unplugs it: it is down and without an address.
    pub(super) async fn unplug(&self, netlink: &Handle) -> Result<(), Error> {
        self.remove_address(netlink).await?;
        let down = LinkUnspec::new_with_index(self.index).down().build();
        netlink.link().set(down).execute().await
    }

    /// Gives it its address and sets it up, and makes its routes, which the kernel drops with the address.
    pub(super) async fn plug(&self, netlink: &Handle) -> Result<(), Error> {
        self.bring_up(netlink).await?;
        self.add_routes(netlink).await
    }

    /// Replaces its address. The rule of the old one stays and does no harm.
    pub(super) async fn readdress(
        &mut self,
        netlink: &Handle,
        address: Ipv4Addr,
    ) -> Result<(), Error> {
        self.remove_address(netlink).await?;
        self.address = address;
        self.plug(netlink).await?;
        self.add_rule(netlink).await
    }

    async fn bring_up(&self, netlink: &Handle) -> Result<(), Error> {
        netlink.address().add(self.index, self.address.into(), PREFIX).execute().await?;
        let queue = LinkAttribute::TxQueueLen(DEVICE_QUEUE);
        let up = LinkUnspec::new_with_index(self.index).append_extra_attribute(queue).up();
        netlink.link().set(up.build()).execute().await
    }

    async fn remove_address(&self, netlink: &Handle) -> Result<(), Error> {
        let own = AddressMessageBuilder::<Ipv4Addr>::new().index(self.index);
        netlink.address().del(own.address(self.address, PREFIX).build()).execute().await
    }
}

/// Prepares a new namespace: loopback is up, and the kernel sends nothing of its own over the links.
pub(super) fn prepare(inside: &Inside) -> io::Result<()> {
    // IPv6 would announce itself on every link. A kernel without it has no such file.
    let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    // Programs without privileges may send echo requests, as on most machines.
    let _ = fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0");
    let loopback = LinkUnspec::new_with_name("lo").up().build();
    inside.wait_for(inside.netlink.link().set(loopback).execute())
}

/// Packets that the namespace's devices dropped for want of room, because nobody read them in time.
pub(super) fn dropped() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    Ok(text.lines().filter_map(dropped_of_line).sum())
}

/// A line is `name: ` and 16 figures, of which the twelfth counts packets dropped on their way out.
fn dropped_of_line(line: &str) -> Option<u64> {
    let (name, figures) = line.split_once(':')?;
    let dropped = figures.split_whitespace().nth(11)?.parse().ok()?;
    (name.trim() != "lo").then_some(dropped)
}
