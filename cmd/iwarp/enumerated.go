package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// enumerated is what kong says of a value that is not in an enumeration.
var enumerated = regexp.MustCompile(`^(\S+) must be one of ("\S+") but got "(.*)"$`)

// remedied is an error of kong's with what to do about it.
//
//housecheck:texts It prints: kong has no types for these errors.
func remedied(err error) error {
	text := err.Error()
	if strings.HasSuffix(text, "can't be used together") {
		return errors.New(text + ": give one of them")
	}
	m := enumerated.FindStringSubmatch(text)
	if m == nil {
		return err
	}
	values := slices.DeleteFunc(strings.Split(strings.ReplaceAll(m[2], `"`, ""), ","), func(v string) bool { return v == "" })
	last := len(values) - 1
	expected := values[last]
	if last > 0 {
		expected = strings.Join(values[:last], ", ") + " or " + expected
	}
	return fmt.Errorf("%s: %.40q is not one of its values%s: expected %s", strings.Trim(m[1], "<>"), m[3],
		suggest(m[3], values), expected)
}
