package host

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/capsule"
)

const (
	minBlockShift, maxBlockShift = 9, 16
	// maxNamespaces bounds how many a controller may tell of.
	maxNamespaces = 4 * capsule.MaxList
)

// A Namespace is a disk.
type Namespace struct {
	c       *Controller
	id      uint32
	page    capsule.IdentifyNamespace
	uuid    [16]byte
	changed atomic.Bool
}

// Namespaces returns those that are active.
func (c *Controller) Namespaces(ctx context.Context) ([]*Namespace, error) {
	ids, err := c.active(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]*Namespace, 0, len(ids))
	for _, id := range ids {
		n, err := c.Namespace(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// active lists the NSIDs of the active namespaces, a page at a time.
func (c *Controller) active(ctx context.Context) (ids []uint32, err error) {
	err = c.asking(ctx, func(s *session) (err error) {
		ids, err = s.active(ctx)
		return err
	})
	return ids, err
}

func (s *session) active(ctx context.Context) (ids []uint32, err error) {
	for last := uint32(0); ; {
		page, err := s.identifyPage(ctx, capsule.Identify{NSID: last, Structure: capsule.StructNamespaces})
		if err != nil {
			return nil, err
		}
		list, err := capsule.ParseList(page)
		if err != nil {
			return nil, err
		}
		for _, id := range list {
			if id <= last || id >= capsule.AllNamespaces-1 {
				return nil, protocolError("lists namespace %#x after %#x, where they ascend", id, last)
			}
			last = id
		}
		if ids = append(ids, list...); len(ids) > maxNamespaces {
			return nil, protocolError("lists more than %d namespaces", maxNamespaces)
		}
		if len(list) < capsule.MaxList {
			return ids, nil
		}
	}
}

// Namespace returns one by its NSID. The error is ErrNoNamespace if there is none that is active.
func (c *Controller) Namespace(ctx context.Context, id uint32) (*Namespace, error) {
	c.mu.Lock()
	n := c.namespaces[id]
	c.mu.Unlock()
	if n != nil {
		return n, nil
	}
	n = &Namespace{c: c, id: id}
	err := c.asking(ctx, func(s *session) (err error) {
		n.page, n.uuid, err = s.identifyNamespace(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.namespaces[id]; known != nil { // another call was faster
		return known, nil
	}
	c.namespaces[id] = n
	return n, nil
}

// identifyNamespace asks what a namespace is, and checks that it can be used.
func (s *session) identifyNamespace(ctx context.Context, id uint32) (n capsule.IdentifyNamespace,
	uuid [16]byte, err error) {
	page, err := s.identifyPage(ctx, capsule.Identify{NSID: id, Structure: capsule.StructNamespace})
	if err == nil {
		n, err = capsule.ParseIdentifyNamespace(page)
	}
	switch {
	case err != nil:
		return n, uuid, err
	case n.Size == 0:
		return n, uuid, fmt.Errorf("nvme: namespace %d: %w", id, ErrNoNamespace)
	case n.BlockShift < minBlockShift || n.BlockShift > maxBlockShift || n.Size > uint64(math.MaxInt64)>>n.BlockShift:
		return n, uuid, protocolError("has %d blocks of 2^%d bytes in namespace %d", n.Size, n.BlockShift, id)
	case n.Metadata != 0:
		return n, uuid, protocolError("has %d bytes of metadata with each block of namespace %d, which this host does not know", n.Metadata, id)
	}
	uuid, err = s.uuid(ctx, id)
	return n, uuid, err
}

// uuid is that of a namespace, zero if it has none. Controllers before version 1.3 do not know the question.
func (s *session) uuid(ctx context.Context, id uint32) (uuid [16]byte, err error) {
	if s.identity.Version < capsule.Version13 {
		return uuid, nil
	}
	page, err := s.identifyPage(ctx, capsule.Identify{NSID: id, Structure: capsule.StructDescriptors})
	if err != nil {
		return uuid, err
	}
	all, err := capsule.ParseDescriptors(page)
	if i := slices.IndexFunc(all, func(d capsule.Descriptor) bool { return d.Type == capsule.DescriptorUUID }); i >= 0 {
		copy(uuid[:], all[i].ID)
	}
	return uuid, err
}

// recognize holds that the namespace is what it was.
func (n *Namespace) recognize(ctx context.Context, s *session) error {
	page, uuid, err := s.identifyNamespace(ctx, n.id)
	if err != nil {
		return err
	}
	was := &n.page
	if page.Size != was.Size || page.BlockShift != was.BlockShift || page.NGUID != was.NGUID ||
		page.EUI64 != was.EUI64 || uuid != n.uuid {
		n.changed.Store(true)
	}
	return nil
}

// ID returns the NSID.
func (n *Namespace) ID() uint32 { return n.id }

// Size returns the length, in bytes.
func (n *Namespace) Size() int64 { return int64(n.page.Size << n.page.BlockShift) }

// BlockSize returns the length of a block, in bytes: the offset and length of a change must be multiples of it.
func (n *Namespace) BlockSize() int { return 1 << n.page.BlockShift }

// UUID returns the namespace's UUID, and false if it has none.
func (n *Namespace) UUID() ([16]byte, bool) { return n.uuid, n.uuid != [16]byte{} }

// An IdentifyNamespace is a page about a namespace.
type IdentifyNamespace = capsule.IdentifyNamespace

// Page returns what the controller says of the namespace.
func (n *Namespace) Page() IdentifyNamespace { return n.page }

// String returns NSID, length and block size.
func (n *Namespace) String() string {
	return fmt.Sprintf("namespace %d (%d bytes, blocks of %d)", n.id, n.Size(), n.BlockSize())
}
