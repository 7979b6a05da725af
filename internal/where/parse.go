package where

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// maxDepth bounds how deep parentheses and "not" may be nested.
const maxDepth = 100

// An Error is what is wrong with an expression, and where.
type Error struct {
	Text   string
	Column int // of the expression in bytes, from 1
}

func (e *Error) Error() string { return fmt.Sprintf("%s (column %d)", e.Text, e.Column) }

// Parse reads an expression: comparisons with and, or, not and parentheses. A comparison is a field, one of = != < <= >
// >=, and a value.
func Parse(text string) (Expr, error) {
	p := &parser{words: split(text), end: len(text)}
	is, err := p.or(0)
	if err == nil && p.next().name != "" {
		err = p.wrong("there is %q where and, or, or the end was expected", p.next().name)
	}
	return Expr{is}, err
}

// A word is a name, a value, a parenthesis or a relation.
type word struct {
	name string
	at   int
}

// These tell the letters that stand for themselves from those of names.
func isRelation(b byte) bool    { return strings.IndexByte("=!<>", b) >= 0 }
func isParenthesis(b byte) bool { return b == '(' || b == ')' }
func isSpace(b byte) bool       { return b == ' ' || b == '\t' || b == '\n' }
func isJoint(b byte) bool       { return b == '&' || b == '|' }
func isOther(b byte) bool       { return !isRelation(b) && !isParenthesis(b) && !isSpace(b) && !isJoint(b) }

// split takes a text apart.
func split(text string) (all []word) {
	for at := 0; at < len(text); {
		end := at + 1
		switch b := text[at]; {
		case isSpace(b):
			at++
			continue
		case isParenthesis(b):
		case isRelation(b):
			for end < len(text) && text[end] == '=' {
				end++
			}
		case isJoint(b):
			for end < len(text) && text[end] == b {
				end++
			}
		default:
			for end < len(text) && isOther(text[end]) {
				end++
			}
		}
		all = append(all, word{text[at:end], at})
		at = end
	}
	return all
}

// A parser goes through the words.
type parser struct {
	words []word
	end   int
}

// next returns the next word, which is empty at the end.
func (p *parser) next() word {
	if len(p.words) == 0 {
		return word{at: p.end}
	}
	return p.words[0]
}

// takes takes the next word if it is one of those, in either case.
func (p *parser) takes(any ...string) bool {
	if !slices.Contains(any, strings.ToLower(p.next().name)) {
		return false
	}
	p.words = p.words[1:]
	return true
}

func (p *parser) wrong(format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), p.next().at + 1}
}

func (p *parser) or(depth int) (condition, error) {
	return p.chain(depth, p.and, []string{"or", "||"}, func(a, b condition) condition {
		return func(e *event) bool { return a(e) || b(e) }
	})
}

func (p *parser) and(depth int) (condition, error) {
	return p.chain(depth, p.not, []string{"and", "&&"}, func(a, b condition) condition {
		return func(e *event) bool { return a(e) && b(e) }
	})
}

// chain is one condition, or several with an operator in between, joined from the left.
func (p *parser) chain(depth int, part func(depth int) (condition, error), operator []string,
	join func(a, b condition) condition) (condition, error) {
	left, err := part(depth)
	for err == nil && p.takes(operator...) {
		var right condition
		if right, err = part(depth); err == nil {
			left = join(left, right)
		}
	}
	return left, err
}

func (p *parser) not(depth int) (condition, error) {
	if depth > maxDepth {
		return nil, p.wrong("it is nested too deep")
	}
	switch {
	case p.takes("not", "!"):
		is, err := p.not(depth + 1)
		return func(e *event) bool { return !is(e) }, err
	case p.takes("("):
		is, err := p.or(depth + 1)
		if err == nil && !p.takes(")") {
			err = p.wrong("a ) is missing")
		}
		return is, err
	}
	return p.comparison()
}

// comparison reads a field, a relation and a value.
func (p *parser) comparison() (condition, error) {
	field := strings.ToLower(p.next().name)
	switch {
	case field == "":
		return nil, p.wrong("a comparison is missing, such as bytes>4K")
	case !slices.Contains(fields, field):
		return nil, p.wrong("there is no field %q: %s", field, strings.Join(fields, ", "))
	}
	p.words = p.words[1:]
	relation := p.next().name
	if relation == "==" {
		relation = "="
	}
	if relations[relation] == nil && relation != "!=" {
		return nil, p.wrong("behind %s, one of = != < <= > >= is missing", field)
	}
	p.words = p.words[1:]
	is, err := p.compared(field, relation, p.next().name)
	if err == nil {
		p.words = p.words[1:]
	}
	return is, err
}

// compared returns the condition of a comparison.
func (p *parser) compared(field, relation, value string) (condition, error) {
	if n, ok := numbers[field]; ok {
		to, err := n.parse(value)
		if err != nil {
			return nil, p.wrong("%s is compared with %s, and not with %q", field, n.want, value)
		}
		return compare(n.values, relation, to), nil
	}
	value = strings.ToLower(value)
	if severity := slices.Index(severities, value); field == "finding" && severity >= 0 {
		return compare(func(e *event) []uint64 { return e.severity }, relation, uint64(severity)), nil
	}
	return p.named(field, relation, value)
}

// named returns the condition that a field has a name.
func (p *parser) named(field, relation, value string) (condition, error) {
	is := func(e *event) bool { return slices.Contains(e.finding, value) }
	has := func(e *event) bool { return len(e.finding) > 0 }
	switch {
	case value == "" || !isName(value):
		return nil, p.wrong("behind %s%s, a name is missing", field, relation)
	case field == "op" && !slices.ContainsFunc(names[:], func(name string) bool { return isOp(name, value) }):
		return nil, p.wrong("there is no op %q: %s", value, strings.Join(opNames(), ", "))
	case field == "finding" && relation != "=" && relation != "!=":
		return nil, p.wrong("%q is no severity: %s", value, strings.Join(severities, ", "))
	case relation != "=" && relation != "!=":
		return nil, p.wrong("%s %q is no number: compare it by = or !=", field, value)
	case field == "op":
		is = func(e *event) bool { return slices.ContainsFunc(e.op, func(op string) bool { return isOp(op, value) }) }
		has = func(e *event) bool { return len(e.op) > 0 }
	}
	if relation == "!=" {
		return func(e *event) bool { return has(e) && !is(e) }, nil
	}
	return is, nil
}

// isName reports whether a word is one.
func isName(s string) bool { return isOther(s[0]) }

// opNames are the first words of the ops that are known, each once.
func opNames() (all []string) {
	for _, name := range names {
		if first, _, _ := strings.Cut(name, "-"); !strings.Contains(name, "opcode") && !slices.Contains(all, first) {
			all = append(all, first)
		}
	}
	return all
}

func parseNumber(text string) (uint64, error) { return strconv.ParseUint(text, 0, 32) }

func parseSize(text string) (uint64, error) {
	n, err := wording.ParseBytes(text)
	return uint64(n), err
}
