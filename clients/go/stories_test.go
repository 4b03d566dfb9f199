package semel_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

// certificate makes one for 127.0.0.1: the folder has it, and the pool trusts it.
func certificate(t *testing.T) (folder string, trusted *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is(t, err, nil)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "semel"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	is(t, err, nil)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	is(t, err, nil)
	folder = t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: made}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		is(t, os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600), nil)
	}
	trusted = x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))
	return folder, trusted
}

// plays goes through what a client does: a call, its repeat, one that waits, one that leaves, a lock.
func plays(t *testing.T, n *node, rdb redis.UniversalClient, name string) {
	t.Helper()
	orders := semel.New(rdb, name, semel.WithPolicy(semel.Policy{As: "call"}))
	done, err := semel.Once(ctx, orders, "k", gives("paid"))
	is(t, err, nil)
	same(t, done.Ran, true)
	done, err = semel.Once(ctx, orders, "k", never(t))
	is(t, err, nil)
	same(t, done.Replayed && done.Value == "paid", true)

	lock, err := orders.Lock(ctx, "l")
	is(t, err, nil)
	results := make(chan error)
	leaves, cancel := context.WithCancel(ctx)
	for _, each := range []context.Context{ctx, leaves} {
		go func() {
			second, err := orders.Lock(each, "l")
			if err == nil {
				err = second.Unlock()
			}
			results <- err
		}()
	}
	until(t, "two wait", func() bool { return n.waiters() == 2 })
	cancel()
	is(t, <-results, context.Canceled)
	is(t, lock.Unlock(), nil)
	is(t, <-results, nil)
	until(t, "nobody owns it", func() bool { return n.state(name, "l") == "absent" })
}

type counting struct{ allowed, reported atomic.Int32 }

func (c *counting) Allow() error         { c.allowed.Add(1); return nil }
func (c *counting) ReportResult(_ error) { c.reported.Add(1) }

var errRefused = errors.New("the limiter refuses")

type refusing struct{}

func (refusing) Allow() error       { return errRefused }
func (refusing) ReportResult(error) {}

func TestStoryOfEachOptionOfTheDriver(t *testing.T) {
	n := start(t)
	n.call("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all")
	limiter := &counting{}
	for name, option := range map[string]func(*redis.Options){
		"resp2":    resp2,
		"resp3":    func(*redis.Options) {},
		"pool":     func(o *redis.Options) { o.PoolSize, o.MaxActiveConns = 1, 1 },
		"idle":     func(o *redis.Options) { o.MinIdleConns, o.PoolFIFO = 2, true },
		"limiter":  func(o *redis.Options) { o.Limiter = limiter },
		"context":  func(o *redis.Options) { o.ContextTimeoutEnabled = true },
		"timeouts": func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -1, -1 },
		"retries":  func(o *redis.Options) { o.MaxRetries = 5 },
		"name":     func(o *redis.Options) { o.ClientName = "named" },
		"db":       func(o *redis.Options) { o.DB = 3 },
		"user":     func(o *redis.Options) { o.Username, o.Password = "app", "secret" },
		"provider": func(o *redis.Options) {
			o.CredentialsProvider = func() (string, string) { return "app", "secret" }
		},
		"connect": func(o *redis.Options) {
			o.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cn.Ping(ctx).Err() }
		},
		"dialer": func(o *redis.Options) { // a connection that cannot be ended by halves
			o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
				found, err := new(net.Dialer).DialContext(ctx, network, address)
				return struct{ net.Conn }{found}, err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "db" {
				rdb := n.client(option)
				orders := semel.New(rdb, name)
				_, err := semel.Once(ctx, orders, "k", gives("paid"))
				is(t, err, nil)
				return // the looks of plays are those of database 0
			}
			plays(t, n, n.client(option), name)
		})
	}
	same(t, limiter.allowed.Load() > 5 && limiter.allowed.Load() == limiter.reported.Load(), true)
	refuses := n.client(func(o *redis.Options) { o.Limiter = refusing{} })
	_, err := semel.Once(ctx, semel.New(refuses, "limited",
		semel.WithPatience(20*time.Millisecond)), "k", never(t))
	is(t, err, semel.ErrUnavailable)
	is(t, err, errRefused)

	hooked, seen := n.client(), &claimHook{}
	hooked.AddHook(seen)
	plays(t, n, hooked, "hooks")
	same(t, len(seen.claims) >= 3, true)
}

func TestStoryOfTLS(t *testing.T) {
	folder, trusted := certificate(t)
	n := start(t, "--tls-cert-file", filepath.Join(folder, "cert.pem"),
		"--tls-key-file", filepath.Join(folder, "key.pem"), "--tls-port", "0", "--tls-auth-clients", "no")
	port := ""
	text, err := os.ReadFile(filepath.Join(n.folder, "ready"))
	is(t, err, nil)
	for _, line := range strings.Split(string(text), "\n") {
		if found, ok := strings.CutPrefix(line, "tls_port="); ok {
			port = found
		}
	}
	if port == "" {
		t.Fatalf("no port for TLS in %q", text)
	}
	secure := func(o *redis.Options) {
		o.Addr, o.TLSConfig = "127.0.0.1:"+port, &tls.Config{RootCAs: trusted}
	}
	plays(t, n, n.client(secure), "tls")
	locks := semel.New(n.client(secure), "locks")
	holder, err := locks.Lock(ctx, "k")
	is(t, err, nil)
	for i := range 100 {
		timed, cancel := context.WithTimeout(ctx, time.Duration(i)*100*time.Microsecond)
		_, err := locks.Lock(timed, "k")
		is(t, err, context.DeadlineExceeded)
		cancel()
	}
	is(t, holder.Unlock(), nil)
	free(t, n, locks, "k")
}

func TestStoryOfAClosedClient(t *testing.T) {
	n := start(t)
	rdb := n.client()
	orders := semel.New(rdb, "orders")
	lock, err := orders.Lock(ctx, "l")
	is(t, err, nil)
	done, err := semel.Once(ctx, orders, "k", func(context.Context, semel.Work) (string, error) {
		is(t, rdb.Close(), nil)
		return "paid", nil
	})
	is(t, err, semel.ErrUnrecorded)
	is(t, err, redis.ErrClosed)
	same(t, done.Value, "paid")
	_, err = semel.Once(ctx, orders, "k2", never(t))
	is(t, err, redis.ErrClosed)
	_, err = orders.Lock(ctx, "k2")
	is(t, err, redis.ErrClosed)
	same(t, semel.ConsumeOnce(ctx, orders, "k2", func(context.Context, semel.Work) error {
		t.Error("it ran")
		return nil
	}).Verdict, semel.Retry)
	is(t, lock.Unlock(), redis.ErrClosed)
}

func TestStoryOfEmptyAndHugeKeys(t *testing.T) {
	n := start(t)
	orders := semel.New(n.client(), "orders")
	for _, key := range []string{"", strings.Repeat("k", 65536), strings.Repeat("k", 1<<20)} {
		_, err := semel.Once(ctx, orders, key, never(t), semel.WithWait(time.Minute))
		is(t, err, semel.ErrKey)
		_, err = orders.TryLock(ctx, key)
		is(t, err, semel.ErrKey)
		is(t, semel.NewTokens(semel.New(n.client(), "tokens")).Consume(ctx, key), semel.ErrKey)
		if key == "" {
			continue // a message without an id is handled, and says so
		}
		consumed := semel.ConsumeOnce(ctx, orders, key, func(context.Context, semel.Work) error {
			t.Error("it ran")
			return nil
		})
		same(t, consumed.Verdict, semel.DeadLetter) // never retried
		is(t, consumed.Err, semel.ErrKey)
	}
	for _, key := range []string{"\x00", "\xff\xfe", "a b\r\n", strings.Repeat("k", 65000)} {
		_, err := semel.Once(ctx, orders, key, gives("x"))
		is(t, err, nil)
	}
}

func TestStoryOfALateLease(t *testing.T) {
	n := start(t)
	lease := semel.WithLease(time.Hour) // not renewed while this test runs
	locks := semel.New(n.client(), "locks", lease)
	lock, err := locks.TryLock(ctx, "k")
	is(t, err, nil)
	n.advance(2 * time.Hour)
	other, err := locks.TryLock(ctx, "k")
	is(t, err, nil)
	is(t, other.Unlock(), nil) // it came and went
	is(t, lock.Unlock(), semel.ErrLeaseLost)
	same(t, lock.Lost(), true)

	// Work whose lease ended, and another owner that came and failed.
	orders := semel.New(n.client(), "orders", lease)
	done, err := semel.Once(ctx, orders, "k", func(context.Context, semel.Work) (string, error) {
		n.advance(2 * time.Hour)
		_, err := semel.Once(context.Background(), orders, "k",
			func(context.Context, semel.Work) (string, error) { return "", errors.New("no") })
		same(t, err.Error(), "no")
		return "mine", nil
	})
	same(t, errors.Is(err, semel.ErrUnrecorded) || errors.Is(err, semel.ErrLeaseLost), true)
	same(t, done.Value, "mine")
}

// A call that is cancelled before, at and after each of its commands.
func TestStoryOfACallCancelledAtEachStep(t *testing.T) {
	n := start(t)
	r := n.relay()
	for i, word := range []string{"HELLO", "SEMEL.NAMESPACE", "SEMEL.CLAIM", "SEMEL.WAIT"} {
		name := fmt.Sprint("step", i)
		held := r.hold(t, word, "", 1)
		holder, err := semel.New(n.client(), name).TryLock(ctx, "k")
		is(t, err, nil)
		orders := semel.New(n.client(r.through, quick), name)
		cancelled, cancel := context.WithCancel(ctx)
		results := make(chan error)
		go func() {
			_, err := semel.Once(cancelled, orders, "k", never(t), semel.WithWait(semel.Forever))
			results <- err
		}()
		if word == "SEMEL.WAIT" {
			until(t, "it waits", func() bool { return n.waiters() == 1 })
			_ = holder.Unlock() // the grant is on its way, and is held back
		}
		<-held.met
		cancel()
		select {
		case err := <-results:
			is(t, err, context.Canceled)
		case <-time.After(patience):
			t.Fatalf("%s: it does not return", word)
		}
		if word != "SEMEL.WAIT" {
			is(t, holder.Unlock(), nil)
		}
		free(t, n, semel.New(n.client(), name), "k")
		close(held.open)
	}
}
