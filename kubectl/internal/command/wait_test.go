package command

import (
	"fmt"
	"net/http"
	"testing"
)

// Of the pods that a list chose, one may go while another is waited for: its deletion is
// told like the other's. One that was named and is not there was never seen.
func TestWaitForTheDeletionOfMany(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		items := ""
		if r.URL.Query().Get("fieldSelector") == "" {
			items = `{"metadata":{"name":"a","namespace":"default"}},{"metadata":{"name":"b","namespace":"default"}}`
		}
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%s]}`, items)
	})
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"pods", "--all"}, "pod/a condition met\npod/b condition met\n"},
		{[]string{"pods", "--all", "-o", "name"}, "pod/a\npod/b\n"},
		{[]string{"pod/a", "pod/b"}, ""},
	} {
		c := kctl(t, host, "", append([]string{"wait", "--for=delete"}, test.args...)...)
		c.want(t, 0)
		if c.out.String() != test.says {
			t.Errorf("wait %v says %q, want %q", test.args, c.out.String(), test.says)
		}
	}
}
