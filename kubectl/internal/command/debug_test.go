package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/apimachinery/pkg/util/remotecommand"

	"kctl/proto/core"
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
	if c.code != 0 || !strings.HasSuffix(c.out.String(), "\nquick\n") || !strings.Contains(c.err.String(),
		"couldn't attach to pod/d, falling back to streaming logs") {
		t.Errorf("code %d, %q, %s", c.code, c.out.String(), c.err.String())
	}
}

// An ephemeral container that is there is not taken for the one that is asked for.
func TestDebugByANameThatIsTaken(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		fmt.Fprint(w,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c"}],"ephemeralContainers":[{"name":"d","image":"i"}]}}`)
	})
	kctl(t, host, "", "debug", "p", "--image=i", "-c", "d", "--attach=false").want(t, 1, `pod p already has an ephemeral container "d", which can't be changed`)
}

// A copy of which only images are changed keeps its labels, its probes and its processes
// to itself; with a container to debug with, no service selects it and it shares them.
func TestDebugACopy(t *testing.T) {
	var made core.Pod
	var deleted *metav1.DeleteOptions
	full := false
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && full {
			http.Error(w, "exceeded quota", http.StatusForbidden)
			return
		}
		if r.Method == http.MethodPost {
			made = core.Pod{}
			if err := json.NewDecoder(r.Body).Decode(&made); err != nil {
				t.Error(err)
			}
		}
		if r.Method == http.MethodDelete {
			deleted = &metav1.DeleteOptions{}
			if err := json.NewDecoder(r.Body).Decode(deleted); err != nil {
				t.Error(err)
			}
		}
		fmt.Fprint(w,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","uid":"u","labels":{"app":"x"}},"spec":{"initContainers":[{"name":"first","image":"old"}],"containers":[{"name":"c","image":"old","command":["run"],"args":["it"],"env":[{"name":"A","value":"b"}],"readinessProbe":{"httpGet":{"port":1}}}]}}`)
	})
	for args, changed := range map[string]bool{
		"--set-image=*=new": false, "--set-image=c=new --profile=sysadmin": false, "--set-image=c=new -c debugger": false,
		"--image=debug": true, "--set-image=c=new -c c": true, "--image=new -c c": true,
	} {
		kctl(t, host, "", append([]string{"debug", "p", "--copy-to=q", "--attach=false"}, strings.Fields(args)...)...).want(t, 0)
		shared := made.Spec.ShareProcessNamespace != nil && *made.Spec.ShareProcessNamespace
		if kept := made.Labels["app"] == "x" && made.Spec.Containers[0].ReadinessProbe != nil; kept == changed || shared != changed {
			t.Errorf("%s: labels %v, processes shared: %v, %+v", args, made.Labels, shared, made.Spec.Containers[0])
		}
	}
	// What the command line does not name of a container stays.
	for args, want := range map[string]string{
		"-c c -- sleep 1": `"old" "" ["sleep" "1"] [] [{A b nil}]`, "-c c --arguments-only -- sleep 1": `"old" "" ["run"] ["sleep" "1"] [{A b nil}]`,
		"-c c --env=C=d,B=c --image-pull-policy=Never --image=new": `"new" "Never" ["run"] ["it"] [{B c nil} {C d nil}]`,
		"--set-image=*=any,c=new":                                  `"new" "" ["run"] ["it"] [{A b nil}]`,
		"--set-image=c=new,*=any":                                  `"new" "" ["run"] ["it"] [{A b nil}]`,
		"-c first -- sleep 1":                                      `"old" "" ["run"] ["it"] [{A b nil}]`,
	} {
		kctl(t, host, "", append([]string{"debug", "p", "--copy-to=q", "--attach=false"}, strings.Fields(args)...)...).want(t, 0)
		c := made.Spec.Containers[0]
		if got := fmt.Sprintf("%q %q %q %q %v", c.Image, c.ImagePullPolicy, c.Command, c.Args, c.Env); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
		if strings.HasPrefix(args, "-c first") != (len(made.Spec.InitContainers[0].Command) == 2) {
			t.Errorf("%s: the first is %+v", args, made.Spec.InitContainers[0])
		}
	}
	// Of a copy of which only images are changed, none is attached to.
	kctl(t, host, "", "debug", "p", "--copy-to=q", "-it", "--set-image=*=new").want(t, 0)
	kctl(t, host, "", "debug", "p", "--copy-to=q", "-c", "none", "--", "sleep", "1").want(t, 1, "you must specify image when creating new container")
	kctl(t, host, "", "debug", "p", "--copy-to=q", "--replace", "--attach=false", "--image=i").want(t, 0)
	if deleted == nil || *deleted.GracePeriodSeconds != 0 || *deleted.Preconditions.UID != "u" {
		t.Errorf("the replaced pod is deleted by %+v", deleted)
	}
	// A copy that is refused replaces nothing.
	full, deleted = true, nil
	kctl(t, host, "", "debug", "p", "--copy-to=q", "--replace", "--attach=false", "--set-image=c=new").want(t, 1, "exceeded quota")
	if deleted != nil {
		t.Errorf("a pod is deleted by %+v, for a copy that was refused", deleted)
	}
}

// The end of the input ends a session with a container whose input goes on, and what it
// said before is shown; nobody waits for its end.
func TestDebugEndsWithItsInput(t *testing.T) {
	const pod = `"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","uid":"u","resourceVersion":"1"},
		"spec":{"containers":[{"name":"c"}],"ephemeralContainers":[{"name":"d","image":"i","stdin":true}]},"status":{"ephemeralContainerStatuses":[{"name":"d","state":{"running":{}}}]}`
	asked := false // for the log
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/attach"):
			connection := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{remotecommand.StreamProtocolV5Name: {Binary: true, Channels: []wsstream.ChannelType{
				wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel,
			}}})
			_, channels, err := connection.Open(w, r)
			if err != nil {
				t.Error(err)
				return
			}
			defer connection.Close()
			fmt.Fprint(channels[3], `{"status":"Success"}`)
		case strings.HasSuffix(r.URL.Path, "/log"):
			if asked = true; r.URL.Query().Get("follow") == "true" {
				t.Errorf("the log is followed: %s", r.URL)
			}
			fmt.Fprint(w, "early\n")
		case r.URL.Query().Has("fieldSelector"):
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{`+pod+`}]}`)
		case r.Method == http.MethodGet:
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c"}]}}`)
		default:
			fmt.Fprint(w, `{`+pod+`}`)
		}
	})
	kctl(t, host, "", "debug", "p", "-i", "--image=i", "-c", "d", "--", "cat").prints(t, "early\n")
	if !asked {
		t.Error("nobody asked for the log")
	}
}

// Who attaches is told first that the session is recorded, with or without input, and only who
// can type something that pressing Enter may help.
func TestAttachSaysWhatIsRecorded(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/attach") {
			status(400, metav1.StatusReasonBadRequest, "pod p does not have a host assigned")(w, r)
			return
		}
		fmt.Fprint(w,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Running"}}`)
	})
	const recorded = "All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed " +
		"through the command prompt.\n"
	for args, says := range map[string]string{"attach p": recorded, "attach p -i": recorded, "attach p -q": ""} {
		c := kctl(t, host, "", strings.Fields(args)...)
		c.want(t, 1, "pod p does not have a host assigned")
		if said, _, _ := strings.Cut(c.err.String(), "error: "); said != says {
			t.Errorf("%s says %q", args, c.err.String())
		}
	}
}
