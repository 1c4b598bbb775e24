package operation

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"kctl/apiserver/internal/servertest"
)

// TestStreamsEndWithTheServer: an open stream is counted, and closed properly
// when the server drains.
func TestStreamsEndWithTheServer(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.NodeAt("n1", func(w http.ResponseWriter, r *http.Request) {
		if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
			t.Error(err)
			return
		}
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeStdout {
				go func() {
					<-replied
					fmt.Fprint(s, "going on")
				}()
			}
			return nil
		})
		if connection != nil {
			<-connection.CloseChan()
		}
	})
	p := servertest.Pod("web")
	p.Spec.NodeName = "n1"
	c.Created("default", p)

	connection, err := c.Socket("/api/v1/namespaces/default/pods/web/attach?stdout=true&stderr=true", "v5.channel.k8s.io")
	c.Must(err)
	defer connection.Close()
	var message []byte
	for len(message) < 2 { // the streams are announced by empty messages
		c.Must(websocket.Message.Receive(connection, &message))
	}
	if string(message) != "\x01going on" {
		t.Errorf("%q", message)
	}
	const gauge = `apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="resource",subresource="attach",verb="CONNECT",version="v1"} 1`
	c.Until("the stream is counted", func(context.Context) bool {
		_, text := c.Request("GET", "/metrics", servertest.AsMaster(), "")
		return strings.Contains(text, gauge)
	})
	c.Must(c.Stop())
	for err == nil {
		err = websocket.Message.Receive(connection, &message)
	}
}
