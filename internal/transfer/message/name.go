package message

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PartSuffix ends the names of files that are not complete. Nothing with such a name is copied.
const PartSuffix = ".iwarp-part"

// CheckPath refuses a path that is not to be made: names with one slash between them, of which none is empty, "." or
// "..", is no UTF-8, or has a control character or the PartSuffix.
func CheckPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("%d bytes, of at most %d", len(path), MaxPath)
	}
	for name := range strings.SplitSeq(path, "/") {
		if err := checkName(name); err != nil {
			return err
		}
	}
	return nil
}

func checkName(name string) error {
	switch {
	case name == "", name == ".", name == "..":
		return fmt.Errorf("%q is not the name of a file", name)
	case !utf8.ValidString(name):
		return errors.New("a name that is not UTF-8: rename it")
	case strings.ContainsFunc(name, hidden):
		return errors.New("a name with control characters: rename it")
	case strings.HasSuffix(name, PartSuffix):
		return fmt.Errorf("%q is the name of what a cut copy has left", name)
	}
	return nil
}

// hidden reports whether a terminal does something other than to show it, or shows what is around it in another order.
func hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// CheckLink refuses a symbolic link at a path that leads out of the first name of the path, at its end or at any step,
// where each name that it goes through is a directory. That is for the receiver to see to: one that goes up again from
// another link may get anywhere.
func CheckLink(path, target string) error {
	depth := strings.Count(path, "/")
	switch {
	case depth == 0:
		return errors.New("a symbolic link by itself")
	case strings.HasPrefix(target, "/"):
		return errors.New("a symbolic link that begins at the root, which leads elsewhere on another host")
	case target == "", len(target) > MaxPath:
		return fmt.Errorf("a symbolic link of %d bytes, of at most %d", len(target), MaxPath)
	}
	for name := range strings.SplitSeq(target, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			if depth--; depth == 0 {
				return errors.New("a symbolic link that leads out of the directory that is copied")
			}
			continue
		}
		if err := checkName(name); err != nil {
			return fmt.Errorf("a symbolic link: %w", err)
		}
		depth++
	}
	return nil
}
