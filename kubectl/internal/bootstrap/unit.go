package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kctl/proto/pki"
)

// Unit is the kubelet's systemd unit.
const Unit = "kctl-kubelet.service"

// dropIn holds the unit's flags for this machine.
const dropIn = "/etc/systemd/system/" + Unit + ".d/50-kctl-join.conf"

// Systemd says whether systemd runs this machine (sd_booted(3)).
func Systemd() bool {
	info, err := os.Stat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// StartUnit tells systemd to start the kubelet, now and at every boot.
func StartUnit(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if err := os.MkdirAll(filepath.Dir(dropIn), 0o755); err != nil {
			return err
		}
		// A list of arguments without blanks or quotes, which Validate has seen to.
		text := "# Written by kctl join.\n[Service]\nEnvironment=\"JOIN_FLAGS=" + strings.Join(args, " ") + "\"\n"
		if err := pki.WriteFileMode(dropIn, []byte(text), 0o644); err != nil {
			return err
		}
	} else if err := os.Remove(dropIn); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	if err := systemctl(ctx, "enable", Unit); err != nil {
		return err
	}
	return systemctl(ctx, "restart", "--no-block", Unit)
}

// stopUnit tells systemd to stop the kubelet and not to start it again.
func stopUnit(ctx context.Context) error {
	if exec.CommandContext(ctx, "systemctl", "cat", Unit).Run() != nil {
		return nil // it was never installed
	}
	if err := systemctl(ctx, "disable", "--now", Unit); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Dir(dropIn)); err != nil {
		return err
	}
	return systemctl(ctx, "daemon-reload")
}

func systemctl(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
