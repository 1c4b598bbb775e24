package command

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// pouring serves a pod whose tar sends zeros, the end of an archive, on one of
// its streams, as long as anybody reads, or up to most bytes.
func pouring(t *testing.T, stream, most int) string {
	const ended = `{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"2"}]}}`
	return pouringUntil(t, stream, most, ended)
}

// pouringUntil is pouring with another end.
func pouringUntil(t *testing.T, stream, most int, end string) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/exec") {
			fmt.Fprint(w,
				`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","namespace":"default"},"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Running"}}`)
			return
		}
		kinds := []wsstream.ChannelType{wsstream.IgnoreChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel}
		connection := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
			remotecommand.StreamProtocolV5Name: {Binary: true, Channels: kinds},
		})
		_, channels, err := connection.Open(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		zeros := bytes.Repeat([]byte{0}, 32<<10)
		for sent := 0; sent < most; sent += len(zeros) {
			if _, err := channels[stream].Write(zeros); err != nil {
				return
			}
		}
		fmt.Fprint(channels[3], end)
	})
}

// A container that keeps sending after the end of its archive is not read for
// ever.
func TestCopyWithoutEnd(t *testing.T) {
	const endless = 1 << 60
	kctl(t, pouring(t, 1, endless), "", "cp", "x:a", filepath.Join(t.TempDir(), "a")).
		want(t, 1, "error: the container keeps sending data after the end of the archive")
}

// Only a part of a container's error output is kept.
func TestCopyWithEndlessErrors(t *testing.T) {
	c := kctl(t, pouring(t, 2, 64<<20), "", "cp", "x:a", filepath.Join(t.TempDir(), "a"))
	c.want(t, 2, "command terminated with exit code 2") // tar's
	if c.err.Len() > 64<<10 {
		t.Errorf("said %d bytes of it", c.err.Len())
	}
}

// Images that only hold their program, as our demo does, have no tar.
func TestCopyFromAnImageWithoutTar(t *testing.T) {
	server := pouringUntil(t, 1, 0,
		`{"status":"Failure","reason":"InternalError","code":500,"message":"OCI runtime exec failed: exec: \"tar\": executable file not found in $PATH: unknown"}`)
	kctl(t, server, "", "cp", "x:a", filepath.Join(t.TempDir(), "a")).want(t, 1, "the container's image has no tar, which cp needs")
}
