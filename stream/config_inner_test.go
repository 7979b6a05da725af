package stream

import "testing"

// TestLargest has a Config ask for as much as there may be of each.
func TestLargest(t *testing.T) {
	c := Config{Ring: maxRing, Credits: maxCredits, Maps: maxMaps}
	if err := c.fill(); err != nil || c != (Config{Ring: maxRing, Credits: maxCredits, Maps: maxMaps}) {
		t.Errorf("%+v, %v", c, err)
	}
}
