// Package memory keeps the memory that an RNIC's peers may reach: regions,
// their Steering Tags (STags), who may use them and how.
//
// It is the one place that decides whether a byte may be read or written,
// and the one place that copies such bytes, so that "nobody reaches memory
// that was not offered" can be read, and tested, here. Every copy is made under the locks of its
// region; bounds are judged by ddp.CheckBounds. Of connections it knows nothing. RFC 5041 section 7.1
// (tagged placement), RFC 5040 section 7.2 and RFC 5042 section 6 are the
// rules; the RDMA verbs' section 7 gives the words.
package memory
