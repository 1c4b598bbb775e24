package describe

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/proto/core"
)

// Namespace describes a namespace, with its quotas and limits.
func Namespace(w io.Writer, namespace *core.Namespace, around Around, now time.Time) error {
	p := newPage(w, now)
	p.around = around
	p.names(&namespace.ObjectMeta)
	p.marks(&namespace.ObjectMeta)
	p.line("Status", "%s", namespace.Status.Phase)
	conditions(p, namespace.Status.Conditions, []string{"Type\tStatus\tLastTransitionTime\tReason\tMessage",
		"----\t------\t------------------\t------\t-------"}, func(c corev1.NamespaceCondition) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", c.Type, c.Status, c.LastTransitionTime.Format(timeFormat), c.Reason, c.Message)
	})
	p.bounds()
	return p.done()
}

func (p *page) configMap(m *core.ConfigMap, events []core.Event) {
	p.names(&m.ObjectMeta)
	p.marks(&m.ObjectMeta)
	p.text("\nData\n====")
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		p.text("%s:\n----\n%s\n", key, m.Data[key])
	}
	p.text("\nBinaryData\n====")
	for _, key := range slices.Sorted(maps.Keys(m.BinaryData)) {
		p.text("%s: %d bytes", key, len(m.BinaryData[key]))
	}
	p.text("")
	p.events(events)
}

// Secret describes a secret, with the sizes of its content.
func Secret(w io.Writer, s *core.Secret, now time.Time) error {
	p := newPage(w, now)
	p.names(&s.ObjectMeta)
	p.marks(&s.ObjectMeta)
	p.text("\nType:\t%s\n\nData\n====", s.Type)
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		// A service account's token is shown, as in kubectl, because it is meant to be passed
		// on.
		if key == corev1.ServiceAccountTokenKey && s.Type == corev1.SecretTypeServiceAccountToken {
			p.line(key, "%s", s.Data[key])
			continue
		}
		p.line(key, "%d bytes", len(s.Data[key]))
	}
	return p.done()
}

// Generic describes an object of any other kind: its metadata, and its fields
// as they are.
func Generic(w io.Writer, object *unstructured.Unstructured, events []core.Event, now time.Time) error {
	p := newPage(w, now)
	p.line("Name", "%s", object.GetName())
	p.line("Namespace", "%s", object.GetNamespace())
	p.pairs("Labels", object.GetLabels())
	p.annotations(object.GetAnnotations())
	rest := maps.Clone(object.Object)
	rest["metadata"] = otherMetadata(rest["metadata"])
	p.fields(rest)
	p.events(events)
	return p.done()
}

// otherMetadata is an object's metadata without what is shown above already,
// and without what nobody reads.
func otherMetadata(metadata any) map[string]any {
	rest := map[string]any{}
	all, _ := metadata.(map[string]any)
	for key, value := range all {
		switch key {
		case "name", "namespace", "labels", "annotations", "managedFields":
		default:
			rest[key] = value
		}
	}
	return rest
}

// fieldsOf writes the fields of a value that has no layout.
func (p *page) fieldsOf(v any) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		p.line("Type", "<unknown>")
		return
	}
	p.fields(content)
}

func (p *page) fields(content map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(content)) {
		label := title(key)
		switch value := content[key].(type) {
		case nil:
		case map[string]any:
			p.head(label)
			p.under(func() { p.fields(value) })
		case []any:
			p.head(label)
			p.under(func() { p.items(value) })
		case string:
			p.multiline(label, value)
		default:
			p.line(label, "%v", value)
		}
	}
}

func (p *page) items(items []any) {
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			p.fields(object)
			continue
		}
		p.text("%v", item)
	}
}

func (p *page) multiline(label, value string) {
	if !strings.Contains(value, "\n") {
		p.line(label, "%s", value)
		return
	}
	p.head(label)
	p.under(func() {
		for line := range strings.SplitSeq(strings.TrimSuffix(value, "\n"), "\n") {
			p.text("%s", line)
		}
	})
}

// acronyms are the words that are written in capitals.
var acronyms = []string{"API", "GUID", "UID", "URL"}

// fieldName matches the keys that kubectl splits into words; others stay as they are.
var fieldName = regexp.MustCompile(`^[a-z][a-zA-Z-]*$`)

// title makes words of a field's name: "serviceAccountName" → "Service Account
// Name".
func title(key string) string {
	if !fieldName.MatchString(key) {
		return key
	}
	var words []string
	for start, i := 0, 1; i <= len(key); i++ {
		if i < len(key) && !startsWord(key, start, i) {
			continue
		}
		word := key[start:i]
		if slices.Contains(acronyms, strings.ToUpper(word)) {
			word = strings.ToUpper(word)
		}
		words = append(words, strings.ToUpper(word[:1])+word[1:])
		start = i
	}
	return strings.Join(words, " ")
}

// startsWord tells whether a new word starts at i, after the word from start: at
// and after a hyphen, at a capital after a small letter, and at the last of
// several capitals if a small letter follows, unless they are the plural of an
// acronym ("URLs").
func startsWord(key string, start, i int) bool {
	upper := func(i int) bool { return key[i] >= 'A' && key[i] <= 'Z' }
	switch {
	case key[i] == '-' || key[i-1] == '-':
		return true
	case !upper(i):
		return false
	case !upper(i - 1):
		return true
	}
	several := i+2 == len(key) && key[i+1] == 's' && slices.Contains(acronyms, key[start:i+1])
	return i+1 < len(key) && !upper(i+1) && !several
}
