package iwarp_test

import (
	"slices"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestQPsInOrder: an RNIC lists its QPs in the order in which they were created.
func TestQPsInOrder(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	pd := newPD(t, rnic)
	var created []*iwarp.QP
	for range 20 {
		created = append(created, create(t, pd, iwarp.QPConfig{}))
	}
	if !slices.Equal(rnic.QPs(), created) {
		t.Error("they are in another order")
	}
}
