// The workloads of `cargo xtask perf sim` in ns-3: FLOWS SACK flows over a dumbbell of three links
// each way. Prints how many data packets arrived in order.
//
//   dumbbell FLOWS MBPS SECONDS LOSS QUEUE

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

// A link without a queue discipline on top of its device's own drop-tail queue.
NetDeviceContainer Join(Ptr<Node> a, Ptr<Node> b, double mbps, const char *delay, unsigned queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(mbps * 1e6))));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::to_string(queue) + "p"));
    return link.Install(a, b);
}

} // namespace

int main(int argc, char *argv[])
{
    if (argc != 6) {
        std::cerr << "usage: dumbbell FLOWS MBPS SECONDS LOSS QUEUE\n";
        return 2;
    }
    const unsigned flows = std::atoi(argv[1]);
    const double mbps = std::atof(argv[2]), seconds = std::atof(argv[3]), loss = std::atof(argv[4]);
    const unsigned queue = std::atoi(argv[5]), roomy = 1000000;

    const uint64_t buffer = uint64_t(8 * mbps * 1e6 * 0.04 / 8) + 262144;
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));

    NodeContainer ends;
    ends.Create(2);
    InternetStackHelper internet;
    internet.Install(ends);
    NetDeviceContainer shared = Join(ends.Get(0), ends.Get(1), mbps, "18ms", queue);
    if (loss > 0) {
        Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(loss);
        shared.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    }

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    std::vector<Ipv4Address> receivers;
    const double access = mbps > 1000 ? mbps : 1000;
    NodeContainer senders, sinks;
    senders.Create(flows);
    sinks.Create(flows);
    internet.Install(senders);
    internet.Install(sinks);
    addresses.Assign(shared);
    for (unsigned flow = 0; flow < flows; ++flow) {
        addresses.NewNetwork();
        addresses.Assign(Join(senders.Get(flow), ends.Get(0), access, "1ms", roomy));
        addresses.NewNetwork();
        Ipv4InterfaceContainer exit =
            addresses.Assign(Join(ends.Get(1), sinks.Get(flow), access, "1ms", roomy));
        receivers.push_back(exit.GetAddress(1));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    std::vector<Ptr<PacketSink>> counters;
    Ptr<UniformRandomVariable> starts = CreateObject<UniformRandomVariable>();
    for (unsigned flow = 0; flow < flows; ++flow) {
        const uint16_t port = 5000;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        ApplicationContainer listening = sink.Install(sinks.Get(flow));
        counters.push_back(DynamicCast<PacketSink>(listening.Get(0)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(receivers[flow], port));
        bulk.SetAttribute("SendSize", UintegerValue(1000));
        bulk.Install(senders.Get(flow)).Start(Seconds(starts->GetValue(0, 1)));
    }
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    uint64_t bytes = 0;
    for (const auto &counter : counters) {
        bytes += counter->GetTotalRx();
    }
    Simulator::Destroy();
    std::cout << bytes / 1000 << "\n";
}
