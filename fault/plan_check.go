package fault

import (
	"fmt"
	"strconv"
)

// Validate tells what is wrong with the plan: too many rules, or a rule that makes no sense. [Parse] returns
// valid plans only.
func (p Plan) Validate() error {
	if len(p.Rules) > MaxRules {
		return fmt.Errorf("fault: %d rules, want %d at most", len(p.Rules), MaxRules)
	}
	for i, r := range p.Rules {
		if err := r.check(); err != nil {
			return ruleError(i+1, r.String(), err)
		}
	}
	return nil
}

// wordError is a word that cannot stand where it does, and what could.
type wordError struct{ word, want string }

func (e *wordError) Error() string { return fmt.Sprintf("%.40q: want %s", e.word, e.want) }

func wrong(word, want string) error { return &wordError{word, want} }

func ruleError(number int, text string, err error) error {
	return fmt.Errorf("fault: rule %d (%.80q): %w", number, text, err)
}

const (
	wantNumber = "a number from 1 to 2147483647"
	wantFD     = "a descriptor from 0 to 2147483646"
	wantChance = "a chance above 0 and up to 1; 0.01 is one in a hundred"
	wantOne    = "one of an errno, short:N and drop, with delay:D or without"
)

// check holds what parser and struct literals have in common. The numbers of a text are above zero already,
// where zero would stand for a default.
func (r Rule) check() error {
	switch fd, _ := r.FD.Number(); {
	case !r.Call.known():
		return wrong(r.Call.String(), "a call: "+calls(Call.known))
	case fd < -1 || fd >= maxNumber:
		return wrong("@fd"+strconv.Itoa(fd), wantFD)
	case fd >= 0 && !r.Call.hasDescriptor():
		return wrong("@fd"+strconv.Itoa(fd), "no descriptor: "+r.Call.String()+" is about none")
	case r.From < 0 || r.From > maxNumber:
		return wrong("#"+strconv.Itoa(r.From), wantNumber)
	case r.Times > maxNumber:
		return wrong("x"+strconv.Itoa(r.Times), wantNumber)
	case !(r.Chance >= 0 && r.Chance <= 1): // NaN too
		return wrong("%"+formatChance(r.Chance), wantChance)
	}
	return r.Action.check(r.Call)
}

func (a Action) check(c Call) error {
	switch {
	case a.Errno > maxNumber:
		return wrong(errnoName(a.Errno), wantNumber)
	case a.Short < 0 || a.Short > maxNumber:
		return wrong("short:"+strconv.Itoa(a.Short), wantNumber)
	case a.Delay < 0:
		return wrong("delay:"+a.Delay.String(), wantDelay)
	case a == Action{}, btoi(a.Errno != 0)+btoi(a.Short != 0)+btoi(a.Drop) > 1:
		return wrong(a.String(), wantOne)
	case a.Short != 0 && !c.isBatched():
		return wrong("short:"+strconv.Itoa(a.Short), "short with one of "+calls(Call.isBatched))
	case a.Drop && !c.movesMessages():
		return wrong("drop", "drop with one of "+calls(Call.movesMessages))
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
