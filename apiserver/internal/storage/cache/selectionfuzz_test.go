package cache

import (
	"encoding/json"
	"testing"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// FuzzSelect: selecting by labels and fields that are read from an entry's
// bytes gives the same result as selecting by the decoded ones.
func FuzzSelect(f *testing.F) {
	for _, seed := range [][5]string{
		{"app=web", "metadata.name=a", "app", "web", "red"}, {"app!=web,tier", "color!=red", "tier", "", "blue"},
		{"app in (q,w,e,r,t,z,u,i,o,p,a,s,d,f,g,h,j,k,l,y,x,c,v,bb,n,m,,b,b)", "", "app", "b", ""},
		{"app notin (q,w,e,r,t,z,u,i,o,p,a,s,d,f,g,h,j,k,l,y,x),a", "", "app", "b", ""},
		{"app in (a,b),!x", "metadata.name!=a,color=", "app", "b", ""}, {"a.b/c notin (d)", "metadata.namespace=n", "a.b/c", "e", "\\,="},
		{"n>3", `color=a\,b\=c`, "n", "4", "a,b=c"}, {"", "", "", "", ""}, {"==,", "=,=", "\x00", "ä", "\u2028"}, {"a=\"b\"", "color=\\", "a", "\"b\"", "\\"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	f.Fuzz(func(t *testing.T, labelSelector, fieldSelector, label, value, color string) {
		byLabels, err := labels.Parse(labelSelector)
		if err != nil {
			return
		}
		byFields, err := fields.ParseSelector(fieldSelector)
		if err != nil {
			return
		}
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "a", "labels": map[string]string{label: value}}, "color": color})
		if err != nil {
			t.Fatal(err)
		}
		var stored struct { // invalid UTF-8 is stored as something else
			Metadata struct{ Labels map[string]string }
			Color    string
		}
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		c := &Cache{options: Options{Logger: zap.NewNop(), Fields: func([]byte) (fields.Set, error) { return fields.Set{"color": stored.Color}, nil }}}
		e := &Entry{Key: "/registry/things/n/a", Value: text, name: "a", namespace: "n"}
		want := byLabels.Matches(labels.Set(stored.Metadata.Labels)) &&
			byFields.Matches(fields.Set{"metadata.name": "a", "metadata.namespace": "n", "color": stored.Color})
		if got := c.matches(NewSelection("/registry/things/", byLabels, byFields), e); got != want {
			t.Errorf("%q, %q select %s: %v", labelSelector, fieldSelector, text, got)
		}
	})
}
