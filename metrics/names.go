package metrics

import (
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/sctp"
)

// stats are what metrics are read from.
type stats struct {
	iwarp.Stats
	sctp sctp.Stats
}

// The metrics that the node exporter has too.
const (
	dataSent        = "node_infiniband_port_data_transmitted_bytes_total"
	dataReceived    = "node_infiniband_port_data_received_bytes_total"
	packetsSent     = "node_infiniband_port_packets_transmitted_total"
	packetsReceived = "node_infiniband_port_packets_received_total"
)

var ofNode = map[string]struct{}{dataSent: {}, dataReceived: {}, packetsSent: {}, packetsReceived: {}}

// messages and byteCount are what is read of iwarp.Traffic.
func messages(t iwarp.Traffic) uint64 { return t.Messages }
func byteCount(t iwarp.Traffic) uint64 {
	return t.Bytes
}

var all = []metric{
	{name: dataSent, help: "Bytes sent to connections after their startup, with all headers.",
		read: one(func(s *stats) uint64 { return s.SentStream })},
	{name: dataReceived, help: "Bytes received from connections after their startup, with all headers.",
		read: one(func(s *stats) uint64 { return s.ReceivedStream })},
	{name: packetsSent, help: "FPDUs sent; over SCTP, segments.",
		read: one(func(s *stats) uint64 { return s.SentFPDUs })},
	{name: packetsReceived, help: "FPDUs received; over SCTP, segments.",
		read: one(func(s *stats) uint64 { return s.ReceivedFPDUs })},

	{name: "iwarp_messages_sent_total", help: "RDMAP messages sent.", label: "opcode", read: traffic(sent, messages)},
	{name: "iwarp_messages_received_total", help: "RDMAP messages received.", label: "opcode",
		read: traffic(received, messages)},
	{name: "iwarp_payload_sent_bytes_total", help: "Bytes of payload sent.", label: "opcode",
		read: traffic(sent, byteCount)},
	{name: "iwarp_payload_received_bytes_total", help: "Bytes of payload received.", label: "opcode",
		read: traffic(received, byteCount)},
	{name: "iwarp_terminates_sent_total", help: "Terminates sent, by their code.", label: "code",
		read: codes(terminatesSent)},
	{name: "iwarp_terminates_received_total", help: "Terminates received, by their code.", label: "code",
		read: codes(terminatesReceived)},

	{name: "iwarp_send_calls_total", help: "Calls that have sent bytes to connections: system calls, where they are of TCP.", read: one(func(s *stats) uint64 { return s.SendCalls })},
	{name: "iwarp_receive_calls_total", help: "Calls that have brought bytes from connections.",
		read: one(func(s *stats) uint64 { return s.ReceiveCalls })},
	{name: "iwarp_spin_seconds_total", help: "Time in which waits have polled the socket.",
		per: int(time.Second), read: one(func(s *stats) uint64 { return uint64(s.SpinTime) })},
	{name: "iwarp_socket_writes_total", help: "Batches of segments that were built and sent together.",
		read: one(func(s *stats) uint64 { return s.SocketWrites })},
	{name: "iwarp_aligned_writes_total", help: "Batches whose FPDUs were made to lie within TCP segments.",
		read: one(func(s *stats) uint64 { return s.AlignedWrites })},
	{name: "iwarp_nudges_total", help: "RDMA Writes without payload to silent peers.",
		read: one(func(s *stats) uint64 { return s.Nudges })},
	{name: "iwarp_held_requests_total", help: "Requests that waited for the first FPDU of an Initiator.",
		read: one(func(s *stats) uint64 { return s.Held })},
	{name: "iwarp_discarded_messages_total", help: "Messages that nobody received, of connections that were closed here.",
		read: one(func(s *stats) uint64 { return s.Discarded })},
	{name: "iwarp_oddities_total", help: "Unusual things that peers did and that leave a connection up.",
		label: "kind", read: oddities},

	{name: "iwarp_ahead_placed_segments_total", help: "Segments that were placed before those in front of them had come.", read: one(func(s *stats) uint64 { return s.Ahead.Placed })},
	{name: "iwarp_ahead_placed_bytes_total", help: "Bytes of payload in segments that were placed ahead.",
		read: one(func(s *stats) uint64 { return s.Ahead.PlacedBytes })},
	{name: "iwarp_ahead_held_segments_total", help: "Segments that came ahead of order and had to wait.",
		read: one(func(s *stats) uint64 { return s.Ahead.Held })},
	{name: "iwarp_ahead_held_bytes_total", help: "Bytes of segments that had to wait.",
		read: one(func(s *stats) uint64 { return s.Ahead.HeldBytes })},
	{name: "iwarp_ahead_held_most_bytes", help: "The sum, over all QPs, of the most bytes that ever waited on each.",
		gauge: true, read: one(func(s *stats) uint64 { return s.Ahead.MostBytes })},
	{name: "iwarp_ahead_repeated_segments_total", help: "Segments that had come before.",
		read: one(func(s *stats) uint64 { return s.Ahead.Repeated })},
	{name: "iwarp_ahead_dropped_segments_total", help: "Segments ahead of order beyond the bounds.",
		read: one(func(s *stats) uint64 { return s.Ahead.Dropped })},

	{name: "iwarp_objects", help: "Objects that there are, by their kind.", label: "kind", gauge: true, read: objects},
	{name: "iwarp_cq_entries", help: "Entries of all Completion Queues.", gauge: true,
		read: one(func(s *stats) uint64 { return uint64(s.CQEntries) })},
	{name: "iwarp_work_requests", help: "Entries of all other queues.", gauge: true,
		read: one(func(s *stats) uint64 { return uint64(s.WorkRequests) })},
	{name: "iwarp_registered_bytes", help: "Bytes of registered memory.", gauge: true,
		read: one(func(s *stats) uint64 { return uint64(s.RegisteredBytes) })},
	{name: "iwarp_emss_bytes", help: "Effective maximum segment size of TCP; of a QP only.", gauge: true,
		read: some(func(s *stats) int { return s.EMSS })},
	{name: "iwarp_mulpdu_bytes", help: "Largest ULPDU that is sent; of a QP only.", gauge: true,
		read: some(func(s *stats) int { return s.MULPDU })},
	{name: "iwarp_events_dropped_total", help: "Asynchronous events that nobody fetched in time.",
		read: one(func(s *stats) uint64 { return s.EventsDropped })},

	{name: "iwarp_startups_total", help: "Startups of connections begun, in both roles.",
		read: one(func(s *stats) uint64 { return s.Startup.Started })},
	{name: "iwarp_startups_established_total", help: "Startups that ended in a connection.",
		read: one(func(s *stats) uint64 { return s.Startup.Established })},
	{name: "iwarp_startups_rejected_total", help: "Startups that either side rejected.",
		read: one(func(s *stats) uint64 { return s.Startup.Rejected })},
	{name: "iwarp_startups_fallback_total", help: "Startups tried again with revision 1.",
		read: one(func(s *stats) uint64 { return s.Startup.Fallbacks })},
	{name: "iwarp_startups_evicted_total", help: "Half-open connections closed or turned away for want of room.",
		read: one(func(s *stats) uint64 { return s.Startup.Evicted })},
	{name: "iwarp_startups_failed_total", help: "Startups that failed, by the reason.",
		label: "reason", read: startupsFailed},
}

var ofSCTP = []metric{
	{name: "iwarp_sctp_ordered_messages_total", help: "Messages over SCTP without the U flag.",
		read: one(func(s *stats) uint64 { return s.sctp.Ordered })},
	{name: "iwarp_sctp_dropped_messages_total", help: "Messages over SCTP on streams without a session.",
		read: one(func(s *stats) uint64 { return s.sctp.Dropped })},
}
