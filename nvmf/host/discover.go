package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/capsule"
)

const (
	// maxRecords bounds how many entries a discovery controller may have.
	maxRecords = 4096
	// discoveries is how often the log is read that changes meanwhile.
	discoveries = 5
)

// A DiscoveryEntry tells of one way to a subsystem, by types of its own.
type (
	DiscoveryEntry = capsule.DiscoveryEntry
	// Transport is how the subsystem is reached; this package dials RDMA only.
	Transport = capsule.Transport
	// AddressFamily is that of Address.
	AddressFamily = capsule.AddressFamily
	// SubsystemType says whether the subsystem has disks, or tells of others.
	SubsystemType = capsule.SubsystemType
	// RDMASpecific is the part of a DiscoveryEntry that is about RDMA.
	RDMASpecific = capsule.RDMASpecific
)

// Discover returns the entries of a discovery controller's log: what there is to dial.
func (d *Dialer) Discover(ctx context.Context, network, address string) ([]DiscoveryEntry, error) {
	r, err := d.resolved()
	if err != nil {
		return nil, err
	}
	r.KeepAlive = 0
	s, err := r.establish(ctx, subsystem{network, address, capsule.DiscoveryNQN})
	if err != nil {
		return nil, err
	}
	defer s.release()
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	entries, err := s.discoveryLog(ctx)
	return entries, errors.Join(err, s.shutdown(ctx))
}

// discoveryLog reads the log until it is the same before and after.
func (s *session) discoveryLog(ctx context.Context) ([]capsule.DiscoveryEntry, error) {
	for range discoveries {
		h, err := s.discoveryHeader(ctx)
		if err != nil {
			return nil, err
		}
		if h.Records > maxRecords {
			return nil, protocolError("has %d discovery entries, and more than %d are not read", h.Records, maxRecords)
		}
		entries, err := s.discoveryEntries(ctx, int(h.Records))
		if err != nil {
			return nil, err
		}
		after, err := s.discoveryHeader(ctx)
		if err != nil || after == h {
			return entries, err
		}
	}
	return nil, fmt.Errorf("nvme: the discovery log has changed %d times while it was read", discoveries)
}

func (s *session) discoveryHeader(ctx context.Context) (h capsule.DiscoveryHeader, err error) {
	b, err := s.log(ctx, 0, capsule.DiscoveryHeaderLen)
	if err != nil {
		return h, err
	}
	if h, err = capsule.ParseDiscoveryHeader(b); err == nil && h.Format != 0 {
		err = protocolError("has a discovery log of format %d, and there is none but 0", h.Format)
	}
	return h, err
}

// discoveryEntries reads so many, as many at a time as one command takes.
func (s *session) discoveryEntries(ctx context.Context, n int) (entries []capsule.DiscoveryEntry, err error) {
	for len(entries) < n {
		at := capsule.DiscoveryHeaderLen + len(entries)*capsule.DiscoveryEntryLen
		count := min(n-len(entries), s.maxData/capsule.DiscoveryEntryLen)
		b, err := s.log(ctx, uint64(at), count*capsule.DiscoveryEntryLen)
		if err != nil {
			return nil, err
		}
		for ; len(b) > 0; b = b[capsule.DiscoveryEntryLen:] {
			e, err := capsule.ParseDiscoveryEntry(b)
			if err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// log reads a part of the discovery log.
func (s *session) log(ctx context.Context, at uint64, length int) ([]byte, error) {
	g := capsule.GetLogPage{Page: capsule.LogDiscovery, Retain: true, Dwords: uint32(length / 4), Offset: at}
	t := &task{cmd: g.Command(), data: make([]byte, length), receives: true}
	_, err := s.command(ctx, s.admin, t)
	return t.data, err
}
