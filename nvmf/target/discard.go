package target

import (
	"cmp"
	"errors"
	"slices"

	"github.com/goiwarp/iwarp/internal/capsule"
)

// A stretch is blocks that belong together, from one to before another.
type stretch struct{ from, to uint64 }

// within judges whether all ranges are there.
func (n *namespace) within(ranges []capsule.Range) capsule.Status {
	for _, r := range ranges {
		if !capsule.Within(r.LBA, r.Blocks, n.blocks()) {
			return capsule.LBAOutOfRange | capsule.DNR
		}
	}
	return capsule.Success
}

// discard has all ranges discarded, if the Backend can.
func (n *namespace) discard(ranges []capsule.Range) error {
	for _, s := range united(ranges) {
		err := n.Discard(int64(s.from<<n.shift), int64((s.to-s.from)<<n.shift))
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return nil
}

// united returns what ranges cover, each block once: so a command that names the whole disk 256 times costs no more
// than one that names it once.
func united(ranges []capsule.Range) (all []stretch) {
	sorted := slices.SortedFunc(slices.Values(ranges),
		func(a, b capsule.Range) int { return cmp.Compare(a.LBA, b.LBA) })
	for _, r := range sorted {
		end, last := r.LBA+uint64(r.Blocks), len(all)-1
		switch {
		case r.Blocks == 0:
		case last >= 0 && r.LBA <= all[last].to:
			all[last].to = max(all[last].to, end)
		default:
			all = append(all, stretch{r.LBA, end})
		}
	}
	return all
}
