package customresources

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/storage/cache"
	"kctl/proto/eventually"
)

// hookedView is a view whose objects a webhook converts.
type hookedView struct {
	*convertedStore
	hold chan struct{} // the webhook answers once it is closed

	mu    sync.Mutex
	calls []int // how many objects each call was about
}

func newHookedView(t *testing.T) *hookedView {
	t.Helper()
	v := &hookedView{hold: make(chan struct{})}
	close(v.hold)
	hook := httptest.NewTLSServer(http.HandlerFunc(v.convert))
	t.Cleanup(hook.Close)
	d := &definition{}
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{
			URL: &hook.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
		}}}
	versions := map[string]*compiledVersion{}
	for _, name := range []string{"v1", "v2"} {
		versions[name] = &compiledVersion{group: "c.io", name: name, prefix: `{"apiVersion":"c.io/` + name + `",`}
	}
	v.convertedStore = &convertedStore{converter: newConverter(d, versions, Options{converted: newConversions()}), version: versions["v2"]}
	return v
}

// convert is the webhook. It refuses the object that is named bad.
func (v *hookedView) convert(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	v.mu.Lock()
	v.calls = append(v.calls, len(review.Request.Objects))
	v.mu.Unlock()
	<-v.hold
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, o := range review.Request.Objects {
		text := strings.Replace(string(o.Raw), "c.io/v1", "c.io/v2", 1)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: []byte(text)})
		if strings.Contains(text, `"bad"`) {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "bad"}
		}
	}
	review.Request, review.Response = nil, response
	_ = json.NewEncoder(w).Encode(review)
}

// asked are the sizes of the calls since it was last called.
func (v *hookedView) asked() []int {
	v.mu.Lock()
	defer v.mu.Unlock()
	calls := v.calls
	v.calls = nil
	return calls
}

func customObject(name string, size int) registry.Encoded {
	return registry.Encoded{JSON: fmt.Appendf(nil, `{"apiVersion":"c.io/v1","kind":"C","metadata":{"name":%q},"text":%q}`, name, strings.Repeat("x", size)),
		Revision: 7}
}

func customObjects(count, size int) (items []registry.Encoded) {
	for i := range count {
		items = append(items, customObject(fmt.Sprint(i), size))
	}
	return items
}

// isConverted reports whether it is the i-th of customObjects in the view's version.
func isConverted(i int, item registry.Encoded) bool {
	text := string(item.JSON)
	return strings.HasPrefix(text, `{"apiVersion":"c.io/v2",`) && strings.Contains(text, fmt.Sprintf(`"name":"%d"`, i)) && item.Revision == 7
}

// TestCollectionsAreConvertedInChunks: a webhook has as long for one call, and its answer may be as large,
// however many objects there are.
func TestCollectionsAreConvertedInChunks(t *testing.T) {
	for _, c := range []struct {
		count, size int
		want        []int
	}{
		{2*mostTogether + 3, 1, []int{mostTogether, mostTogether, 3}},
		{5, mostTogetherBytes / 2, []int{2, 2, 1}},
		{2, mostTogetherBytes, []int{1, 1}},
	} {
		v := newHookedView(t)
		got, err := v.convertAll(t.Context(), customObjects(c.count, c.size))
		if err != nil || len(got) != c.count {
			t.Fatalf("%d objects, %v", len(got), err)
		}
		for i, item := range got {
			if !isConverted(i, item) {
				t.Fatalf("object %d is %.100s", i, item.JSON)
			}
		}
		if calls := v.asked(); !slices.Equal(calls, c.want) {
			t.Errorf("%d objects of %d bytes: the webhook was asked for %v, want %v", c.count, c.size, calls, c.want)
		}
	}
}

// TestConversionsAreShared: a webhook is asked once about what many see, and about an object that is
// read by itself each time.
func TestConversionsAreShared(t *testing.T) {
	v, items := newHookedView(t), customObjects(3, 1)
	v.hold = make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if got, err := v.convertAll(t.Context(), items); err != nil || !isConverted(2, got[2]) {
				t.Errorf("%d objects, %v", len(got), err)
			}
		})
	}
	close(v.hold)
	all.Wait()
	calls, sum := v.asked(), 0
	for _, objects := range calls { // lists that begin together may each take some
		sum += objects
	}
	if sum != len(items) {
		t.Errorf("four lists asked for %v", calls)
	}
	if _, err := v.convertAll(t.Context(), append(items, customObject("3", 1))); err != nil {
		t.Error(err)
	}
	if _, err := v.convertOne(t.Context(), items[0]); err != nil {
		t.Error(err)
	}
	if calls := v.asked(); !slices.Equal(calls, []int{1, 1}) {
		t.Errorf("a list with one more object, and a read of one, asked for %v", calls)
	}
}

// TestAClientThatLeavesTakesNoConversionAlong: others wait for the same one.
func TestAClientThatLeavesTakesNoConversionAlong(t *testing.T) {
	v, items := newHookedView(t), customObjects(1, 1)
	v.hold = make(chan struct{})
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := v.convertAll(gone, items)
		left <- err
	}()
	eventually.Holds(t, "the webhook is asked", func() bool { return len(v.asked()) > 0 })
	leave()
	close(v.hold)
	if err := <-left; err == nil {
		t.Error("who has left is answered")
	}
	if got, err := v.convertAll(t.Context(), items); err != nil || !isConverted(0, got[0]) || len(v.asked()) != 0 {
		t.Errorf("%d objects, %v, or the webhook was asked again", len(got), err)
	}
}

// calledOnWait is a context that calls waits when someone begins to wait for its end.
type calledOnWait struct {
	context.Context
	waits func()
}

func (c calledOnWait) Done() <-chan struct{} {
	c.waits()
	return c.Context.Done()
}

// TestAnotherCallsFailureIsNotShared: what is to blame may be in another namespace.
func TestAnotherCallsFailureIsNotShared(t *testing.T) {
	v, items := newHookedView(t), customObjects(3, 1)
	_, settle := v.converter.converted.Claim(items[1].JSON, weak.Make(v.version))
	fail := sync.OnceFunc(func() { settle(nil, errors.New("another object of its call")) })
	got, err := v.convertAll(calledOnWait{t.Context(), fail}, items)
	if err != nil || len(got) != 3 || !isConverted(0, got[0]) || !isConverted(1, got[1]) || !isConverted(2, got[2]) {
		t.Errorf("%d objects, %v", len(got), err)
	}
}

// theseEvents are a watch whose events are all ready at once.
type theseEvents []registry.Encoded

func (e theseEvents) Events() iter.Seq2[registry.WatchEvent, bool] {
	return func(yield func(registry.WatchEvent, bool) bool) {
		for i, item := range e {
			if !yield(registry.WatchEvent{Type: cache.Added, Object: item}, i+1 < len(e)) {
				return
			}
		}
	}
}

// TestInitialEventsAreConvertedTogether, and those before one that can't be converted are shown.
func TestInitialEventsAreConvertedTogether(t *testing.T) {
	v, items := newHookedView(t), customObjects(mostTogether+2, 1)
	for range 2 { // the second watcher needs no call
		i := 0
		for event, more := range (&watcher{ctx: t.Context(), view: v.convertedStore, inner: theseEvents(items)}).Events() {
			if event.Type != cache.Added || !isConverted(i, event.Object) || more != (i+1 < len(items)) {
				t.Fatalf("event %d is %v %.100s, more %v", i, event.Type, event.Object.JSON, more)
			}
			i++
		}
		if i != len(items) {
			t.Errorf("%d events", i)
		}
	}
	if calls := v.asked(); !slices.Equal(calls, []int{mostTogether, 2}) {
		t.Errorf("the webhook was asked for %v", calls)
	}
	var kinds []string
	mixed := theseEvents{customObject("0", 1), customObject("1", 1), customObject("bad", 1), customObject("3", 1)}
	for event, more := range (&watcher{ctx: t.Context(), view: v.convertedStore, inner: mixed}).Events() {
		if kinds = append(kinds, event.Type); more != (event.Type != cache.Error) {
			t.Errorf("%v, more %v", event.Type, more)
		}
	}
	if !slices.Equal(kinds, []string{cache.Added, cache.Added, cache.Error}) {
		t.Errorf("around one that can't be converted: %v", kinds)
	}
}

// TestAWatchNeedsNoPlace among those who convert: all places may be taken by lists whose webhook hangs.
func TestAWatchNeedsNoPlace(t *testing.T) {
	v, items := newHookedView(t), customObjects(4, mostShown*2/3)
	for range cap(v.converter.bound) {
		v.converter.bound <- struct{}{}
	}
	for event := range (&watcher{ctx: t.Context(), view: v.convertedStore, inner: theseEvents(items)}).Events() {
		if event.Type != cache.Added {
			t.Fatalf("%v %s", event.Type, event.Object.JSON)
		}
	}
	if calls := v.asked(); !slices.Equal(calls, []int{2, 2}) {
		t.Errorf("the webhook was asked for %v", calls)
	}
}
