package wording

import "fmt"

// Name returns the name of a value, which is its index in names, and the value itself
// after what it is if it has none.
func Name[T ~uint8](v T, what string, names []string) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s %d", what, uint8(v))
}
