# The workloads of `cargo xtask perf sim` in ns-2: FLOWS SACK flows over a dumbbell of three links
# each way. Prints how many data packets were acknowledged.
#
#   ns dumbbell.tcl FLOWS MBPS SECONDS LOSS QUEUE

lassign $argv flows mbps seconds loss queue

set ns [new Simulator]
# Only the headers that are used: packets are smaller, as in the fastest of ns-2's own examples.
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right ${mbps}Mb 18ms DropTail
$ns queue-limit $left $right $queue
$ns queue-limit $right $left 1000000
if {$loss > 0} {
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $loss
    $errors ranvar [new RandomVariable/Uniform]
    $errors drop-target [new Agent/Null]
    $ns link-lossmodel $errors $left $right
}

set access [expr {$mbps > 1000 ? $mbps : 1000}]
set random [new RNG]
$random seed 1
for {set flow 0} {$flow < $flows} {incr flow} {
    set sender [$ns node]
    set receiver [$ns node]
    $ns duplex-link $sender $left ${access}Mb 1ms DropTail
    $ns duplex-link $right $receiver ${access}Mb 1ms DropTail
    foreach {from to} [list $sender $left $right $receiver $left $sender $receiver $right] {
        $ns queue-limit $from $to 1000000
    }
    set tcp($flow) [new Agent/TCP/Sack1]
    $tcp($flow) set packetSize_ 1000
    $tcp($flow) set window_ 100000
    $tcp($flow) set windowInit_ 2
    $tcp($flow) set minrto_ 0.2
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $sender $tcp($flow)
    $ns attach-agent $receiver $sink
    $ns connect $tcp($flow) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($flow)
    $ns at [$random uniform 0 1] "$ftp start"
}

proc finish {} {
    global tcp flows
    set acknowledged 0
    for {set flow 0} {$flow < $flows} {incr flow} {
        incr acknowledged [expr {[$tcp($flow) set ack_] + 1}]
    }
    puts $acknowledged
    exit 0
}
$ns at $seconds finish
$ns run
