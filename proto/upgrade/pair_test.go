package upgrade

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhoDoesNotFollowIsCutOff: one side closes, and the other neither reads
// nor closes.
func TestWhoDoesNotFollowIsCutOff(t *testing.T) {
	for _, leaver := range []string{"client", "backend", "request"} {
		t.Run(leaver, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				user, client := net.Pipe()
				server, backend := net.Pipe()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan struct{})
				began := time.Now()
				go func() {
					Carry(ctx, client, backend)
					close(ended)
				}()
				want, stays := Patience, server
				switch leaver {
				case "client":
					_ = user.Close()
				case "backend":
					_ = server.Close()
					stays = user
				case "request":
					cancel()
					want, stays = goodbyeTimeout, user
				}
				<-ended
				if took := time.Since(began); took != want {
					t.Errorf("it took %s", took)
				}
				if _, err := stays.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("the other side reads %v", err)
				}
			})
		})
	}
}

// TestABackendThatWritesForEverIsNotReadForEver: its client is gone.
func TestABackendThatWritesForEverIsNotReadForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user, client := net.Pipe()
		server, backend := net.Pipe()
		_ = user.Close()
		written := make(chan int)
		go func() {
			total := 0
			for {
				n, err := server.Write(make([]byte, 64<<10))
				if total += n; err != nil {
					written <- total
					return
				}
			}
		}()
		Carry(t.Context(), client, backend)
		if total := <-written; total < maxDiscarded || total > maxDiscarded+128<<10 {
			t.Errorf("%d bytes were read", total)
		}
	})
}
