package fault

import (
	"strconv"
	"strings"
)

// String is the plan as [Parse] reads it. That of an invalid plan is for people only.
func (p Plan) String() string {
	var items []string
	if p.Seed != 0 {
		items = append(items, "seed="+strconv.FormatUint(p.Seed, 10))
	}
	for _, r := range p.Rules {
		items = append(items, r.String())
	}
	return strings.Join(items, "; ")
}

// MarshalText returns the plan's text; the error is that of [Plan.Validate].
func (p Plan) MarshalText() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return []byte(p.String()), nil
}

// String is the rule as a plan's text has it, as short as can be.
func (r Rule) String() string {
	r = r.normal()
	var b strings.Builder
	b.WriteString(r.Call.String())
	if fd, ok := r.FD.Number(); ok {
		b.WriteString("@fd" + strconv.Itoa(fd))
	}
	b.WriteString(r.span())
	if r.Chance != 0 {
		b.WriteString("%" + formatChance(r.Chance))
	}
	b.WriteString("=" + r.Action.String())
	return b.String()
}

// span is which calls a normal rule looks at. "#3" alone is one call, or all from there if there is a chance.
func (r Rule) span() string {
	from := "#" + strconv.Itoa(r.From)
	switch {
	case r.Times < 0 && r.From == 1:
		return ""
	case r.Times < 0 && r.Chance == 0:
		return from + "*"
	case r.Times < 0, r.Times == 1 && r.Chance == 0:
		return from
	}
	return from + "x" + strconv.Itoa(r.Times)
}

func formatChance(p float64) string { return strconv.FormatFloat(p, 'g', -1, 64) }

// String is the action as a rule's text has it; "nothing" for the zero Action, which no rule may have.
func (a Action) String() string {
	var words []string
	if a.Delay != 0 {
		words = append(words, "delay:"+strings.ReplaceAll(a.Delay.String(), "µ", "u"))
	}
	if a.Errno != 0 {
		words = append(words, errnoName(a.Errno))
	}
	if a.Short != 0 {
		words = append(words, "short:"+strconv.Itoa(a.Short))
	}
	if a.Drop {
		words = append(words, "drop")
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, "+")
}
