package daemon

import (
	"fmt"
	"net"
	"os"
)

// Notify tells the service manager a state ("READY=1", "STOPPING=1"), by
// systemd's protocol (sd_notify(3)); without $NOTIFY_SOCKET it does nothing.
func Notify(state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify service manager: %w", err)
	}
	return nil
}
