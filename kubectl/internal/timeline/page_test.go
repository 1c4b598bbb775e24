package timeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
	"kctl/proto/relay"
)

// parsed is a page as a browser sees it.
type parsed struct {
	elements map[string]int
	attrs    []html.Attribute
	text     string
	style    string
	policy   string
}

func parse(t *testing.T, text string) parsed {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	p := parsed{elements: map[string]int{}}
	for node := range root.Descendants() {
		switch {
		case node.Type == html.ElementNode:
			p.elements[node.Data]++
			p.attrs = append(p.attrs, node.Attr...)
			if node.Data == "meta" && node.Attr[0].Val == "Content-Security-Policy" {
				p.policy = node.Attr[1].Val
			}
		case node.Type == html.TextNode && node.Parent.Data == "style":
			p.style += node.Data
		case node.Type == html.TextNode:
			p.text += node.Data
		}
	}
	return p
}

// Whatever a pod and a server say is text on the page: it makes no element, no
// attribute and no request.
func TestPageOfAHostilePod(t *testing.T) {
	const hostile = `"'></style><script>alert(1)</script><img src=x onerror=alert(2)> &lt; {{.}} javascript:`
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: hostile, Namespace: hostile, UID: hostile,
		Labels: map[string]string{"l" + hostile: "lv" + hostile}, Annotations: map[string]string{"a" + hostile: "av" + hostile},
	}}
	pod.Spec.NodeName = hostile
	pod.Spec.InitContainers = []corev1.Container{{Name: "i" + hostile, Image: hostile}}
	pod.Spec.Containers = []corev1.Container{{Name: hostile, Image: hostile}}
	pod.Status.Phase = hostile
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  hostile,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: hostile}},
	}}
	events := []core.Event{{
		Type:                "Warning" + hostile,
		Reason:              hostile,
		Message:             hostile,
		ReportingController: hostile,
		Count:               3,
		EventTime:           metav1.NewMicroTime(zero.Add(time.Millisecond)),
	}}
	line := Layout(append(whole(), at(relay.KubeletStarted.Of(hostile), 200), at(hostile, 300), at(hostile+"."+hostile, 301)))
	var out bytes.Buffer
	if err := line.HTML(&out, About{Pod: pod, Events: events, Now: "n" + hostile, Lost: []string{"l" + hostile}}); err != nil {
		t.Fatal(err)
	}
	page := parse(t, out.String())
	for _, name := range []string{"script", "img", "link", "iframe", "object", "embed", "form", "a", "use", "image", "base"} {
		if page.elements[name] > 0 {
			t.Errorf("the page has an element <%s>", name)
		}
	}
	if page.elements["style"] != 1 || page.elements["title"] == 0 {
		t.Errorf("the page has %d styles and %d titles", page.elements["style"], page.elements["title"])
	}
	for _, a := range page.attrs {
		name := strings.ToLower(a.Key)
		if strings.HasPrefix(name, "on") || name == "src" || name == "href" || name == "style" || name == "srcset" {
			t.Errorf("the page has an attribute %s=%q", name, a.Val)
		}
	}
	for _, want := range []string{"l" + hostile, "lv" + hostile, "a" + hostile, "av" + hostile, "i" + hostile, "waiting: " + hostile, "Now n" + hostile} {
		if !strings.Contains(page.text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The page requests nothing, and its content security policy allows nothing but
// its own style sheet.
func TestPageAllowsItsStyleAlone(t *testing.T) {
	pod, events := somePod()
	var out bytes.Buffer
	if err := Layout(whole()).HTML(&out, About{Pod: pod, Events: events}); err != nil {
		t.Fatal(err)
	}
	page := parse(t, out.String())
	sum := sha256.Sum256([]byte(page.style))
	if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(page.policy, want) {
		t.Errorf("the policy %q does not allow the style sheet: %s", page.policy, want)
	}
	if !strings.HasPrefix(page.policy, "default-src 'none';") {
		t.Errorf("the policy allows more than it must: %q", page.policy)
	}
	for _, word := range []string{"http:", "https:", "url(", "@import", "//"} {
		if strings.Contains(out.String(), word) {
			t.Errorf("the page names another place: %s", word)
		}
	}
	if !strings.Contains(page.style, "prefers-color-scheme: dark") {
		t.Error("the page has no dark side")
	}
}

// Every hop is on the page, in each chart to which it belongs.
func TestPageShowsEveryMoment(t *testing.T) {
	pod, events := somePod()
	line := Layout(whole())
	var out bytes.Buffer
	if err := line.HTML(&out, About{Pod: pod, Events: events}); err != nil {
		t.Fatal(err)
	}
	page := parse(t, out.String())
	for _, row := range line.Rows {
		if !strings.Contains(page.text, string(row.Hop)) {
			t.Errorf("the page does not name %s", row.Hop)
		}
	}
	for _, want := range []string{"150.0 ms", "The whole way", "Closer: until the pod has a node", "Scheduled"} {
		if !strings.Contains(page.text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestPageOfNothing(t *testing.T) {
	var out bytes.Buffer
	if err := (Timeline{}).HTML(&out, About{Pod: &core.Pod{}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(parse(t, out.String()).text, "Nothing is known") {
		t.Error("a pod without a way has a page that does not say so")
	}
	if strings.Contains(out.String(), "<b>Now</b>") {
		t.Error("a pod that waits for nothing does")
	}
}

// The durations of the rows on the critical path add up to the whole.
func TestPathAddsUp(t *testing.T) {
	line := Layout(whole())
	var sum time.Duration
	on := line.Path()
	for i, row := range line.Rows {
		if on[i] {
			sum += row.Took
		}
		if row.Hop == relay.KubeletImagePulled.Of("web") && on[i] {
			t.Error("the pod did not wait for the image: the sandbox took longer")
		}
	}
	if sum != line.Total {
		t.Errorf("the path adds up to %v, of %v", sum, line.Total)
	}
	percents := 0.0
	for _, s := range line.shares() {
		percents += s.Width
	}
	if percents < 99.9 || percents > 100.1 {
		t.Errorf("the shares add up to %.2f %%", percents)
	}
}

func TestTicksAreFew(t *testing.T) {
	for total := time.Nanosecond; total > 0 && total < 200*365*24*time.Hour; total *= 3 {
		all := ticks(total)
		if len(all) < 1 || len(all) > 8 {
			t.Errorf("%d ticks for %v", len(all), total)
		}
	}
}
