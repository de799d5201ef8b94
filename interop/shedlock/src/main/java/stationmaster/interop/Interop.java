package stationmaster.interop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

/**
 * ShedLock's own library and Stationmaster's binary on one table: each excludes the other. Arguments: the binary, and a
 * folder to write into; the database is the one of STATIONMASTER_DATABASE_URL, told to Java by INTEROP_JDBC_URL.
 */
public final class Interop {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int TAKEN = 75;

    private final JdbcTemplate jdbc;
    private final JdbcTemplateLockProvider java;
    private final String binary;
    private final Path folder;

    private Interop(String binary, Path folder) {
        this.jdbc = connection();
        this.java = provider("java-host");
        this.binary = binary;
        this.folder = folder;
    }

    public static void main(String[] arguments) throws Exception {
        Interop interop = new Interop(arguments[0], Path.of(arguments[1]));
        Files.deleteIfExists(interop.folder.resolve("ours.log"));
        Map<String, Step> steps = Map.ofEntries(
                Map.entry("1 what Java holds we do not get, until it is given back", interop::javaHolds),
                Map.entry("2 what we hold Java does not get, until it is given back", interop::weHold),
                Map.entry("3 at least holds in both directions", interop::atLeast),
                Map.entry("4 what is kept alive outlives at most in both directions", interop::keptAlive),
                Map.entry("5 what a lost holder had is taken over after at most in both directions", interop::lostHolders),
                Map.entry("6 a former holder frees nothing in both directions", interop::formerHolders),
                Map.entry("7 the row stays and Java's columns are as Java writes them", interop::theRow),
                Map.entry("8 a counter that nobody else protects comes out exact", interop::contention));
        boolean failed = false;
        for (String name : steps.keySet().stream().sorted().toList()) {
            Instant began = Instant.now();
            try {
                steps.get(name).run();
                System.out.printf("ok      %s (%d ms)%n", name, Duration.between(began, Instant.now()).toMillis());
            } catch (Exception | AssertionError error) {
                failed = true;
                System.out.printf("FAILED  %s: %s%n", name, error);
                if (error.getCause() != null) {
                    System.out.printf("        because of %s%n", error.getCause());
                }
            }
        }
        System.out.println(failed ? "interop failed" : "interop passed");
        System.exit(failed ? 1 : 0);
    }

    private interface Step {
        void run() throws Exception;
    }

    private void javaHolds() throws Exception {
        SimpleLock lock = locked("java-holds", 60, 0);
        expect("we are refused", ours("java-holds").end() == TAKEN);
        expect("Java is refused as well", tryLock("java-holds", 60, 0).isEmpty());
        lock.unlock();
        expect("we get it then", ours("java-holds").end() == 0);
        locked("java-holds", 60, 0).unlock();
    }

    private void weHold() throws Exception {
        Ours holder = holder("we-hold", "--at-most", "60s");
        expect("Java is refused", tryLock("we-hold", 60, 0).isEmpty());
        expect("we are refused as well", ours("we-hold").end() == TAKEN);
        expect("our command ends well", holder.finish() == 0);
        locked("we-hold", 60, 0).unlock();
    }

    private void atLeast() throws Exception {
        expect("a quick command of ours", ours("at-least", "--at-least", "3s").end() == 0);
        expect("Java is refused although we are done", tryLock("at-least", 60, 0).isEmpty());
        SimpleLock lock = waitFor("at-least", 3);
        lock.unlock();
        expect("we are refused although Java is done", ours("at-least").end() == TAKEN);
        expect("we get it when its time is over", ours("at-least", "--wait", "60s").end() == 0);
    }

    private void keptAlive() throws Exception {
        Ours holder = holder("kept", "--at-most", "4s");
        eventually("more time has passed", () -> age("kept") > 5);
        expect("Java is refused", tryLock("kept", 60, 0).isEmpty());
        expect("our command ends well", holder.finish() == 0);
        SimpleLock lock = locked("kept", 2, 0);
        lock = lock.extend(Duration.ofSeconds(60), Duration.ZERO).orElseThrow();
        eventually("its first time is over", () -> age("kept") > 3);
        expect("we are refused", ours("kept").end() == TAKEN);
        lock.unlock();
    }

    private void lostHolders() throws Exception {
        Ours holder = holder("lost", "--at-most", "3s");
        holder.kill();
        Instant killed = Instant.now();
        expect("Java is refused at first", tryLock("lost", 60, 0).isEmpty());
        waitFor("lost", 0).unlock();
        System.out.printf("        Java took over %d ms after our holder was killed (at most 3 s)%n",
                Duration.between(killed, Instant.now()).toMillis());
        // A Java process that is gone: nobody unlocks, nobody extends.
        locked("lost", 3, 0);
        expect("we are refused at first", ours("lost").end() == TAKEN);
        expect("we take over", ours("lost", "--wait", "60s").end() == 0);
    }

    private void formerHolders() throws Exception {
        SimpleLock former = locked("former", 1, 0);
        Ours holder = holder("former", "--wait", "60s", "--at-most", "60s");
        former.unlock();
        expect("Java's late unlock has freed nothing", tryLock("former", 60, 0).isEmpty());
        expect("nor can it extend", former(former));
        expect("our command ends well", holder.finish() == 0);

        // Ours is stopped past its time, so that it cannot extend; Java takes over; then ours goes on and gives back.
        Ours late = holder("former", "--at-most", "2s");
        late.signal("STOP");
        SimpleLock lock = waitFor("former", 0);
        late.signal("CONT");
        expect("our command was told that its lock is lost", late.finish() == 79);
        expect("what Java holds is still held", ours("former").end() == TAKEN);
        lock.unlock();
    }

    /** ShedLock refuses to use a lock again after its unlock; what counts is that nothing is extended. */
    private static boolean former(SimpleLock lock) {
        try {
            return lock.extend(Duration.ofSeconds(60), Duration.ZERO).isEmpty();
        } catch (IllegalStateException refused) {
            return true;
        }
    }

    private void theRow() throws Exception {
        for (int round = 0; round < 3; round++) {
            locked("row", 60, 0).unlock();
            expect("ours", ours("row").end() == 0);
        }
        expect("one row", count("select count(*) from shedlock where name = 'row'") == 1);
        expect("ours is the last", count("select count(*) from shedlock where name = 'row' and locked_by like 'cli:%#%'") == 1);
        SimpleLock lock = locked("row", 60, 0);
        expect("60 s from now, in UTC", count("select count(*) from shedlock where name = 'row' and locked_by = 'java-host' and "
                + "lock_until - timezone('utc', now()) between interval '50 s' and interval '60 s'") == 1);
        lock.unlock();
        Ours holder = holder("row", "--at-most", "60s");
        expect("ours the same", count("select count(*) from shedlock where name = 'row' and locked_by like 'cli:%#%' and "
                + "lock_until - timezone('utc', now()) between interval '35 s' and interval '60 s'") == 1);
        expect("our command ends well", holder.finish() == 0);
    }

    private void contention() throws Exception {
        int threads = 8, rounds = 100, ourThreads = 4, ourRounds = 20;
        Path counter = folder.resolve("counter");
        Files.writeString(counter, "0");
        ExecutorService pool = Executors.newFixedThreadPool(threads + ourThreads);
        List<Future<?>> all = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
            JdbcTemplateLockProvider provider = provider("java-" + thread);
            all.add(pool.submit(() -> {
                for (int round = 0; round < rounds; round++) {
                    SimpleLock lock = waitFor(provider, "counter", 60, 0);
                    int read = Integer.parseInt(Files.readString(counter).strip());
                    Thread.yield();
                    Files.writeString(counter, Integer.toString(read + 1));
                    lock.unlock();
                }
                return null;
            }));
        }
        String add = "n=$(cat '" + counter + "'); echo $((n + 1)) > '" + counter + "'";
        for (int thread = 0; thread < ourThreads; thread++) {
            all.add(pool.submit(() -> {
                for (int round = 0; round < ourRounds; round++) {
                    Ours ours = start(List.of("counter", "--at-most", "60s", "--wait", "120s"), List.of("sh", "-c", add));
                    expect("our command ends well", ours.end() == 0);
                }
                return null;
            }));
        }
        for (Future<?> each : all) {
            each.get(5, TimeUnit.MINUTES);
        }
        pool.shutdown();
        int counted = Integer.parseInt(Files.readString(counter).strip());
        int expected = threads * rounds + ourThreads * ourRounds;
        System.out.printf("        %d threads of Java x %d and %d of ours x %d: counted %d of %d%n",
                threads, rounds, ourThreads, ourRounds, counted, expected);
        expect("every addition counts", counted == expected);
    }

    // Java's side.

    /** A connection for one thread. */
    private static JdbcTemplate connection() {
        return new JdbcTemplate(new SingleConnectionDataSource(System.getenv("INTEROP_JDBC_URL"), true));
    }

    private static JdbcTemplateLockProvider provider(String lockedBy) {
        return new JdbcTemplateLockProvider(JdbcTemplateLockProvider.Configuration.builder()
                .withJdbcTemplate(connection())
                .withLockedByValue(lockedBy)
                .usingDbTime()
                .build());
    }

    private static LockConfiguration configuration(String name, int atMost, int atLeast) {
        return new LockConfiguration(Instant.now(), name, Duration.ofSeconds(atMost), Duration.ofSeconds(atLeast));
    }

    private Optional<SimpleLock> tryLock(String name, int atMost, int atLeast) {
        return java.lock(configuration(name, atMost, atLeast));
    }

    private SimpleLock locked(String name, int atMost, int atLeast) {
        return tryLock(name, atMost, atLeast).orElseThrow(() -> new AssertionError("Java should get " + name));
    }

    private SimpleLock waitFor(String name, int atLeast) throws Exception {
        return waitFor(java, name, 60, atLeast);
    }

    private static SimpleLock waitFor(JdbcTemplateLockProvider provider, String name, int atMost, int atLeast)
            throws InterruptedException {
        Instant end = Instant.now().plus(PATIENCE.multipliedBy(4));
        while (Instant.now().isBefore(end)) {
            Optional<SimpleLock> lock = provider.lock(configuration(name, atMost, atLeast));
            if (lock.isPresent()) {
                return lock.get();
            }
            Thread.sleep(ThreadLocalRandom.current().nextInt(5, 30));
        }
        throw new AssertionError("Java should get " + name + " in the end");
    }

    // Our side.

    /** A run of our binary. */
    private record Ours(Process process) {
        int end() throws InterruptedException {
            if (!process.waitFor(PATIENCE.toSeconds() * 4, TimeUnit.SECONDS)) {
                throw new AssertionError("our binary does not end");
            }
            return process.exitValue();
        }

        /** Lets a holder's command end. */
        int finish() throws IOException, InterruptedException {
            process.getOutputStream().close();
            return end();
        }

        void kill() throws InterruptedException {
            process.destroyForcibly();
            end();
        }

        void signal(String name) throws IOException, InterruptedException {
            new ProcessBuilder("kill", "-" + name, Long.toString(process.pid())).inheritIO().start().waitFor();
        }
    }

    private Ours start(List<String> arguments, List<String> command) throws IOException {
        List<String> line = new ArrayList<>(List.of(binary, "lock", "run"));
        line.addAll(arguments);
        line.add("--");
        line.addAll(command);
        Path log = folder.resolve("ours.log");
        return new Ours(new ProcessBuilder(line)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .start());
    }

    private Ours ours(String name, String... options) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(name));
        arguments.addAll(List.of(options));
        return start(arguments, List.of("true"));
    }

    /** A command of ours that runs until its input ends, and has the lock. */
    private Ours holder(String name, String... options) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(name));
        arguments.addAll(List.of(options));
        Ours holder = start(arguments, List.of("cat"));
        eventually("we hold " + name, () -> count("select count(*) from shedlock where name = '" + name
                + "' and locked_by like 'cli:%#%' and lock_until > timezone('utc', clock_timestamp())") == 1);
        return holder;
    }

    // What both need.

    private int count(String query) {
        Integer count = jdbc.queryForObject(query, Integer.class);
        return count == null ? 0 : count;
    }

    private double age(String name) {
        Double age = jdbc.queryForObject(
                "select extract(epoch from timezone('utc', clock_timestamp()) - locked_at)::float8 from shedlock where name = ?",
                Double.class, name);
        return age == null ? 0 : age;
    }

    private static void eventually(String what, BooleanSupplier isSo) throws InterruptedException {
        Instant end = Instant.now().plus(PATIENCE);
        while (!isSo.getAsBoolean()) {
            expect("in time: " + what, Instant.now().isBefore(end));
            Thread.sleep(20);
        }
    }

    private static void expect(String what, boolean isSo) {
        if (!isSo) {
            throw new AssertionError("not so: " + what);
        }
    }
}
