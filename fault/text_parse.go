package fault

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parse reads a plan; the package comment has the form of its text. Empty items count for nothing, so the
// empty text is the zero Plan.
//
//   - Shape: the plan is valid, and its rules have From and Times set to what was meant.
//   - Errors: name the rule, the word that is wrong, and what would be right.
func Parse(text string) (Plan, error) {
	var p Plan
	if len(text) > MaxTextBytes {
		return p, fmt.Errorf("fault: a text of %d bytes, want %d at most", len(text), MaxTextBytes)
	}
	seeded := false
	for item := range strings.SplitSeq(text, ";") {
		item = strings.Trim(item, " \t\r\n")
		if digits, ok := strings.CutPrefix(item, "seed="); ok {
			seed, err := strconv.ParseUint(digits, 10, 64)
			if err != nil || seeded {
				return Plan{}, fmt.Errorf("fault: %w", wrong(item, "one seed, from 0 to 18446744073709551615"))
			}
			p.Seed, seeded = seed, true
			continue
		}
		if item == "" {
			continue
		}
		if len(p.Rules) == MaxRules {
			return Plan{}, fmt.Errorf("fault: more than %d rules", MaxRules)
		}
		r, err := parseRule(item)
		if err != nil {
			return Plan{}, ruleError(len(p.Rules)+1, item, err)
		}
		p.Rules = append(p.Rules, r)
	}
	return p, nil
}

// UnmarshalText is [Parse].
func (p *Plan) UnmarshalText(text []byte) error {
	q, err := Parse(string(text))
	if err == nil {
		*p = q
	}
	return err
}

func parseRule(text string) (Rule, error) {
	head, action, ok := strings.Cut(text, "=")
	if !ok {
		return Rule{}, wrong(text, "call=action")
	}
	r, err := parseHead(head)
	if err != nil {
		return Rule{}, err
	}
	if r.Action, err = parseAction(action); err != nil {
		return Rule{}, err
	}
	return r, r.check()
}

// parseHead reads what stands before "=", and fills in what a text leaves out.
func parseHead(head string) (Rule, error) {
	name := head[:len(head)-len(strings.TrimLeft(head, "abcdefghijklmnopqrstuvwxyz"))]
	call, ok := callNamed(name)
	if short, isX := strings.CutSuffix(name, "x"); !ok && isX { // recvx3
		if call, ok = callNamed(short); ok {
			name = short
		}
	}
	if !ok {
		return Rule{}, wrong(head, "a call: "+calls(Call.known)+"; or seed=N")
	}
	r := Rule{Call: call}
	numbered := false
	for rest := head[len(name):]; rest != ""; {
		end := strings.IndexAny(rest[1:], "@#x*%") + 1
		if end == 0 {
			end = len(rest)
		}
		if err := r.setMark(rest[:end]); err != nil {
			return Rule{}, err
		}
		numbered = numbered || rest[0] == '#'
		rest = rest[end:]
	}
	if r.Times == 0 && !numbered {
		r.Times = -1
	}
	return r.normal(), nil
}

// setMark reads one of the marks that may follow a call's name. Each field is set once: its zero value is none
// that a text could give it.
func (r *Rule) setMark(word string) error {
	const once = "each of @fd, #, x or *, and % once"
	mark, value := word[0], word[1:]
	switch {
	case mark == '@' && r.FD != FD{}, mark == '#' && r.From != 0, mark == '%' && r.Chance != 0,
		(mark == 'x' || mark == '*') && r.Times != 0:
		return wrong(word, once)
	}
	switch mark {
	case '@':
		fd, ok := parseNumber(strings.TrimPrefix(value, "fd"), 0)
		if !ok || !strings.HasPrefix(value, "fd") || fd == maxNumber {
			return wrong(word, "@fdN with "+wantFD)
		}
		r.FD = OnlyFD(fd)
	case '#':
		return setNumber(&r.From, word, value)
	case 'x':
		return setNumber(&r.Times, word, value)
	case '%':
		p, err := strconv.ParseFloat(value, 64)
		if err != nil || !(p > 0 && p <= 1) || strings.Trim(value, "0123456789.eE+-") != "" {
			return wrong(word, wantChance)
		}
		r.Chance = p
	default:
		if word != "*" {
			return wrong(word, "@fdN, #N, xN, *, %P or =")
		}
		r.Times = -1
	}
	return nil
}

const wantDelay = "a duration above 0 like 20ms"

func parseAction(text string) (a Action, err error) {
	for word := range strings.SplitSeq(text, "+") {
		key, value, _ := strings.Cut(word, ":")
		switch {
		case key == "delay" && a.Delay == 0:
			if a.Delay, err = time.ParseDuration(value); err != nil || a.Delay <= 0 {
				return a, wrong(word, wantDelay)
			}
			continue
		case key == "delay", a.Errno != 0, a.Short != 0, a.Drop:
			return a, wrong(word, "no more than "+wantOne)
		}
		switch key {
		case "short":
			if err := setNumber(&a.Short, word, value); err != nil {
				return a, err
			}
		case "drop":
			a.Drop = word == "drop"
		default:
			a.Errno = errnoNamed(word)
		}
		if a.Errno == 0 && a.Short == 0 && !a.Drop {
			return a, wrong(word, "an errno by its name in POSIX or its number (EPERM, 1), short:N, drop or delay:D")
		}
	}
	return a, nil
}

func setNumber(to *int, word, value string) error {
	n, ok := parseNumber(value, 1)
	if !ok {
		return wrong(word, wantNumber)
	}
	*to = n
	return nil
}

// parseNumber reads digits, and nothing else, as a number from least to maxNumber.
func parseNumber(s string, least int) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil && int(n) >= least
}
