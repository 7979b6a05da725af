// Package small is a library: what it exports is the product.
package small

import "example.com/small/rules"

// Do runs one rule, and names another.
func Do(n int) bool {
	_ = rules.Dead
	return rules.Used(n) && describe(rules.Kind(n)) != ""
}

func describe(s interface{ String() string }) string { return s.String() }
