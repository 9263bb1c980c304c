use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::rule::RuleAction;
use rtnetlink::{AddressMessageBuilder, Error, Handle, LinkUnspec, RouteMessageBuilder};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::addresses::Addresses;
use super::space::Inside;

/// The interface of one end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    /// The path's number, from 1: the third byte of its addresses.
    pub(super) number: u8,
    pub(super) addresses: Addresses,
}

/// Prefix lengths of a path's IPv4 and IPv6 subnets, bits.
const PREFIX_V4: u8 = 24;
const PREFIX_V6: u8 = 64;
/// The interfaces' MTU, bytes. A link's model may apply a smaller one.
const MTU: u16 = 1500;
/// Most packets that a device queues until they are read.
const DEVICE_QUEUE: u32 = 10_000;
/// The routes of path n are in table TABLES + n. The rule that selects this table has the same
/// number as its priority.
const TABLES: u32 = 1_000;
/// Folder of the kernel's IPv6 settings.
const IPV6: &str = "/proc/sys/net/ipv6/conf";

impl Interface {
    /// Makes a TUN device for path `number` in the namespace, brings it up and gives it its
    /// addresses.
    pub(super) fn make(
        inside: &Inside,
        name: &str,
        number: u8,
        addresses: Addresses,
    ) -> io::Result<(SyncDevice, Interface)> {
        let device = DeviceBuilder::new().name(name).mtu(MTU).build_sync()?;
        device.set_nonblocking(true)?;
        let index = device.if_index()?;
        let interface = Interface { name: name.to_owned(), index, number, addresses };
        inside.wait_for(interface.bring_up(&inside.netlink))?;
        Ok((device, interface))
    }

    /// Adds default routes through this interface: one in the table for packets from its addresses,
    /// and one in the main table, where the path with the lowest number is preferred.
    pub(super) async fn add_routes(&self, netlink: &Handle) -> Result<(), Error> {
        let number = u32::from(self.number);
        let table = TABLES + number;
        let everywhere = || RouteMessageBuilder::<Ipv4Addr>::new().output_interface(self.index);
        let routes = [everywhere().table_id(table), everywhere().priority(number)];
        for route in routes {
            netlink.route().add(route.build()).replace().execute().await?;
        }
        if self.addresses.v6.is_some() {
            let everywhere = || RouteMessageBuilder::<Ipv6Addr>::new().output_interface(self.index);
            let routes = [everywhere().table_id(table), everywhere().priority(number)];
            for route in routes {
                netlink.route().add(route.build()).replace().execute().await?;
            }
        }
        Ok(())
    }

    /// Adds rules by which packets from this interface's addresses use its routing table.
    pub(super) async fn add_rules(&self, netlink: &Handle) -> Result<(), Error> {
        let table = TABLES + u32::from(self.number);
        let rule = || netlink.rule().add().table_id(table).priority(table);
        let rule = || rule().action(RuleAction::ToTable);
        rule().v4().source_prefix(self.addresses.v4, 32).execute().await?;
        match self.addresses.v6 {
            Some(address) => rule().v6().source_prefix(address, 128).execute().await,
            None => Ok(()),
        }
    }

    /// Removes the interface's addresses and sets it down.
    pub(super) async fn unplug(&self, netlink: &Handle) -> Result<(), Error> {
        self.remove_addresses(netlink).await?;
        let down = LinkUnspec::new_with_index(self.index).down().build();
        netlink.link().set(down).execute().await
    }

    /// Brings the interface up, gives it its addresses and adds its routes, which the kernel drops
    /// together with the addresses.
    pub(super) async fn plug(&self, netlink: &Handle) -> Result<(), Error> {
        self.bring_up(netlink).await?;
        self.add_routes(netlink).await
    }

    /// Replaces the interface's addresses. The rules for the old addresses stay and do no harm.
    pub(super) async fn readdress(
        &mut self,
        netlink: &Handle,
        addresses: Addresses,
    ) -> Result<(), Error> {
        self.remove_addresses(netlink).await?;
        self.addresses = addresses;
        self.plug(netlink).await?;
        self.add_rules(netlink).await
    }

    async fn bring_up(&self, netlink: &Handle) -> Result<(), Error> {
        let queue = LinkAttribute::TxQueueLen(DEVICE_QUEUE);
        let up = LinkUnspec::new_with_index(self.index).append_extra_attribute(queue).up();
        netlink.link().set(up.build()).execute().await?;
        let Addresses { v4, v6 } = self.addresses;
        netlink.address().add(self.index, v4.into(), PREFIX_V4).execute().await?;
        let Some(v6) = v6 else { return Ok(()) };
        let mut request = netlink.address().add(self.index, v6.into(), PREFIX_V6);
        // Skip duplicate address detection, which would delay binding to the address: no other host
        // can have this address.
        request.message_mut().header.flags |= AddressHeaderFlags::Nodad;
        request.execute().await
    }

    async fn remove_addresses(&self, netlink: &Handle) -> Result<(), Error> {
        let Addresses { v4, v6 } = self.addresses;
        let own = AddressMessageBuilder::<Ipv4Addr>::new().index(self.index).address(v4, PREFIX_V4);
        netlink.address().del(own.build()).execute().await?;
        if let Some(v6) = v6 {
            let own = AddressMessageBuilder::<Ipv6Addr>::new().index(self.index);
            netlink.address().del(own.address(v6, PREFIX_V6).build()).execute().await?;
        }
        Ok(())
    }
}

/// Prepares a new namespace: loopback is up, and the kernel sends nothing of its own over the links.
pub(super) fn prepare(inside: &Inside) -> io::Result<()> {
    // Interfaces get no link-local addresses, because the kernel would solicit routers from them on
    // every link. A kernel without IPv6 lacks these files, so errors are ignored.
    for (setting, value) in [("disable_ipv6", "0"), ("addr_gen_mode", "1"), ("accept_ra", "0")] {
        let _ = fs::write(Path::new(IPV6).join("default").join(setting), value);
    }
    let _ = fs::write(Path::new(IPV6).join("all/disable_ipv6"), "0");
    // Programs without privileges may send echo requests, as on most machines.
    let _ = fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0");
    let loopback = LinkUnspec::new_with_name("lo").up().build();
    inside.wait_for(inside.netlink.link().set(loopback).execute())
}

/// Whether interfaces of this namespace can have IPv6 addresses, once it is prepared.
pub(super) fn has_ipv6() -> bool {
    let disabled =
        |group: &str| fs::read_to_string(Path::new(IPV6).join(group).join("disable_ipv6"));
    ["all", "default"].into_iter().all(|group| disabled(group).is_ok_and(|text| text.trim() == "0"))
}

/// Packets that the namespace's devices dropped because they were not read in time and the queues
/// were full.
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
