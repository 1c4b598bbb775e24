package watch

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object that can't be decoded, as another server may have stored it, does
// not hide the others, is not read again and again, and disappears when it is
// deleted.
func TestObjectsThatCannotBeRead(t *testing.T) {
	broken := func(kind, name, uid, revision string) string {
		return strings.Replace(event(kind, pod(name, uid, revision)), `"containers":null`, `"containers":[{"resources":{"requests":{"cpu":"lots"}}}]`, 1)
	}
	s := &script{t: t,
		lists: []func(http.ResponseWriter){func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"kind":"PodList","metadata":{"resourceVersion":"10"},"items":[{"metadata":{"namespace":"a","name":"bad","uid":"1","resourceVersion":"3"},"spec":7},` +
				`{"metadata":{"namespace":"a","name":"good","uid":"2","resourceVersion":"5"}}]}`))
		}},
		watchs: []func(http.ResponseWriter, *http.Request){events(
			broken("ADDED", "worse", "3", "11"), broken("MODIFIED", "good", "2", "12"), event("ADDED", pod("late", "4", "13")),
			broken("DELETED", "worse", "3", "14"), broken("DELETED", "good", "2", "15"))},
	}
	told, store := run(t, s, Options{})
	if want := []string{"add good@5", "add late@13", "delete good@15"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if store.Len() != 1 {
		t.Errorf("%d objects are kept, want 1", store.Len())
	}
	s.check("list ", "watch from 10", "watch from 15")
}

// A new list keeps the old state of an object that can't be decoded now, unless
// it is another object with that name.
func TestAListThatCannotBeReadDropsNothing(t *testing.T) {
	list := func(revision string, items ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"kind":"PodList","metadata":{"resourceVersion":"` + revision + `"},"items":[` + strings.Join(items, ",") + `]}`))
		}
	}
	item := func(name, uid, revision, spec string) string {
		return `{"metadata":{"namespace":"a","name":"` + name + `","uid":"` + uid + `","resourceVersion":"` + revision + `"},"spec":` + spec + `}`
	}
	s := &script{t: t,
		lists: []func(http.ResponseWriter){
			list("10", item("web", "1", "3", "{}"), item("old", "2", "4", "{}")),
			list("20", item("web", "1", "13", "7"), item("old", "5", "14", "7")),
		},
		watchs: []func(http.ResponseWriter, *http.Request){events(event("ERROR", status(410, metav1.StatusReasonExpired)))},
	}
	told, store := run(t, s, Options{})
	if want := []string{"add web@3", "add old@4", "delete old@4"}; !slices.Equal(slices.Sorted(slices.Values(told)), slices.Sorted(slices.Values(want))) {
		t.Errorf("told %q, want %q", told, want)
	}
	if kept, ok := store.Get("a", "web"); !ok || kept.ResourceVersion != "3" {
		t.Errorf("kept: %v", kept)
	}
}

// An event that can't be decoded at all is got past by listing again.
func TestAnEventThatCannotBeReadAtAllMakesAList(t *testing.T) {
	for name, broken := range map[string]string{
		"object without a name": `{"type":"ADDED","object":{"spec":7}}`,
		"unknown type":          `{"type":"SEEN","object":{}}`,
		"empty object":          `{"type":"ADDED","object":{}}`,
		"null":                  `{"type":"MODIFIED","object":null}`,
		"without a version":     `{"type":"ADDED","object":{"metadata":{"namespace":"a","name":"one","uid":"1"}}}`,
		"no JSON":               `<html>`,
		"no event":              `["ADDED"]` + "\n",
		"type of no text":       `{"type":7,"object":{}}` + "\n",
		"bookmark of nothing":   `{"type":"BOOKMARK","object":{}}`,
		"error":                 `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":500,"reason":"InternalError","message":"conversion failed"}}`,
		"error of nothing":      `{"type":"ERROR","object":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{t: t,
				lists:  []func(http.ResponseWriter){list("10", ""), list("20", "", pod("one", "1", "15"))},
				watchs: []func(http.ResponseWriter, *http.Request){func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(broken)) }},
			}
			told, _ := run(t, s, Options{})
			if want := []string{"add one@15"}; !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
			s.check("list ", "watch from 10", "list ", "watch from 20")
		})
	}
}

// An object without a name in a list can't be told from others, and its old state would
// be dropped: what is known stays until a list can be read.
func TestAListOfObjectsWithoutNamesIsAskedForAgain(t *testing.T) {
	for _, nameless := range []string{`null`, `{}`, `{"metadata":{"namespace":"a","resourceVersion":"7"}}`} {
		t.Run(nameless, func(t *testing.T) {
			broken := func(w http.ResponseWriter) {
				_, _ = w.Write([]byte(`{"kind":"PodList","metadata":{"resourceVersion":"10"},"items":[` + nameless + `]}`))
			}
			s := &script{t: t, lists: []func(http.ResponseWriter){broken, list("20", "", pod("one", "1", "15"))}}
			told, _ := run(t, s, Options{})
			if want := []string{"add one@15"}; !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
			s.check("list ", "list ", "watch from 20")
		})
	}
}

// Another list, or an answer that is none, would read as a list of no objects: a kubelet
// would end all its pods.
func TestWhatIsNoListOfTheKindIsAskedForAgain(t *testing.T) {
	for _, other := range []string{
		`{}`, `null`, `{"kind":"NodeList","metadata":{"resourceVersion":"10"},"items":[]}`, `{"kind":"Status","status":"Success"}`,
		`{"metadata":{"resourceVersion":"10"},"items":[]}`,
	} {
		t.Run(other, func(t *testing.T) {
			s := &script{
				t: t,
				lists: []func(http.ResponseWriter){list("10", "", pod("one", "1", "5")), func(w http.ResponseWriter) { _, _ = w.Write([]byte(other)) },
					list("20", "", pod("one", "1", "5"))},
				watchs: []func(http.ResponseWriter, *http.Request){events(event("ERROR", status(410, metav1.StatusReasonExpired)))},
			}
			told, _ := run(t, s, Options{})
			if want := []string{"add one@5"}; !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
			s.check("list ", "watch from 10", "list ", "list ", "watch from 20")
		})
	}
}
