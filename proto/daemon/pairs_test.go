package daemon

import (
	"maps"
	"testing"

	"github.com/spf13/pflag"
)

func TestPairs(t *testing.T) {
	for _, test := range []struct {
		alone string
		args  []string
		want  map[string]string // nil: refused
	}{
		{"", []string{"--p="}, map[string]string{}},
		{"", []string{"--p=a=1, b = 2 ,", "--p=c==,a=3"}, map[string]string{"a": "3", "b": "2", "c": "="}},
		{"", []string{"--p=a"}, nil},
		{"true", []string{"--p=a,b=false"}, map[string]string{"a": "true", "b": "false"}},
		{"true", []string{"--p==1"}, nil},
	} {
		var got map[string]string
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		PairsVar(fs, &got, "p", test.alone, "")
		err := fs.Parse(test.args)
		if (err == nil) != (test.want != nil) || err == nil && !maps.Equal(got, test.want) {
			t.Errorf("%q: %v, %v; want %v", test.args, got, err, test.want)
		}
	}
}
