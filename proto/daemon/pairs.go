package daemon

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// PairsVar adds a flag of NAME=VALUE,… that may be given more than once and may be
// empty: upstream's flags accept that, and its scripts use it. alone is the value of a
// name without "="; if it is empty, such a name is refused.
func PairsVar(fs *pflag.FlagSet, into *map[string]string, name, alone, usage string) {
	fs.Var(&pairsValue{into: into, alone: alone}, name, usage)
}

type pairsValue struct {
	into  *map[string]string
	alone string
}

// Type implements pflag.Value.
func (p *pairsValue) Type() string { return "stringToString" }

// String implements pflag.Value.
func (p *pairsValue) String() string {
	if p.into == nil { // pflag asks a zero value
		return ""
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*p.into)) {
		all = append(all, name+"="+(*p.into)[name])
	}
	return strings.Join(all, ",")
}

// Set implements pflag.Value.
func (p *pairsValue) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			value = p.alone
		}
		if name = strings.TrimSpace(name); !ok && p.alone == "" || name == "" {
			return fmt.Errorf("%q is not NAME=VALUE", pair)
		}
		if *p.into == nil {
			*p.into = map[string]string{}
		}
		(*p.into)[name] = strings.TrimSpace(value)
	}
	return nil
}
