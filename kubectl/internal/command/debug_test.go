package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// If a debugging container ends before kctl can attach to it, its output is
// shown from the log, as by kubectl.
func TestDebugOfWhatEndsAtOnce(t *testing.T) {
	const made = `"apiVersion":"v1","kind":"Pod","metadata":{"name":"d","namespace":"default","uid":"u","resourceVersion":"1"},
		"spec":{"nodeName":"n","restartPolicy":"Never","containers":[{"name":"debugger","image":"i"}]}`
	const running = `{` + made + `,"status":{"containerStatuses":[{"name":"debugger","state":{"running":{}}}]}}`
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/nodes/n"):
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`)
		case strings.HasSuffix(r.URL.Path, "/attach"):
			status(500, metav1.StatusReasonInternalError, "container is in CONTAINER_EXITED state")(w, r)
		case strings.HasSuffix(r.URL.Path, "/log"):
			if q := r.URL.Query(); q.Get("container") != "debugger" || q.Get("follow") != "true" {
				t.Errorf("asked for the log by %s", r.URL)
			}
			fmt.Fprint(w, "quick\n")
		case r.Method == http.MethodPost:
			fmt.Fprint(w, `{`+made+`}`)
		default:
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[`+running+`]}`)
		}
	})
	c := kctl(t, host, "", "debug", "node/n", "-i", "--image=i", "--profile=general", "--", "echo", "quick")
	if c.code != 0 || !strings.HasSuffix(c.out.String(), "\nquick\n") || !strings.Contains(c.err.String(), "couldn't attach to pod/d, falling back to streaming logs") {
		t.Errorf("code %d, %q, %s", c.code, c.out.String(), c.err.String())
	}
}

// An ephemeral container that is there is not taken for the one that is asked for.
func TestDebugByANameThatIsTaken(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c"}],"ephemeralContainers":[{"name":"d","image":"i"}]}}`)
	})
	kctl(t, host, "", "debug", "p", "--image=i", "-c", "d", "--attach=false").want(t, 1, `pod p has an ephemeral container "d", which can't be changed`)
}
