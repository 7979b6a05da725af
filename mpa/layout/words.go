package layout

import "strconv"

// Octets is a number of octets in words, "1 octet" or "2 octets", for the texts of package mpa and its parts.
func Octets(n int) string {
	if n == 1 {
		return "1 octet"
	}
	return strconv.Itoa(n) + " octets"
}
