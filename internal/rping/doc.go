// Package rping is the ping-pong of rdma-core's rping in both roles: the first
// program that people run over a new RDMA connection. Either end can be rdma-core's.
//
// # Protocol
//
// The client has two buffers, a source and a sink. One ping is:
//
//	client                                   server
//	Send {source address, STag, length} ---->
//	                                    <---- RDMA Read of the source
//	                                    <---- Send "go ahead"
//	Send {sink address, STag, length}   ---->
//	                                    <---- RDMA Write of the text into the sink
//	                                    <---- Send "go ahead"
//
// Every Send has 16 octets, see [message.Advert]; what is in a "go ahead" does not
// matter. The text ends with an octet of zero, and the server writes as much
// as it finds up to that.
package rping
