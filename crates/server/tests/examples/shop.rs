//! docs/guides/temporal-workers.md, from its first line to its last, once for each language.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::guide::Guide;
use crate::support::{eventually, free_port};
use crate::terminal::{Desk, Running};
use crate::wakes::{Wake, send_bare};
use crate::{GO, JAVA, Language, PYTHON, TYPESCRIPT, present, say};

/// A secret that the receiver knows besides its own, as while secrets are exchanged.
const OLD: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const STRANGE: &str = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

/// The list of packages of a language; nothing has to be fetched while it is the same. Those that compile do so each time.
fn list(language: Language) -> Option<&'static str> {
    match language.name {
        "Python" => Some("docs/examples/python/requirements.txt"),
        "TypeScript" => Some("docs/examples/typescript/package.json"),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "fetches packages of four languages: cargo xtask examples"]
async fn an_order_is_placed_run_and_reminded_of_in_each_language_as_the_guide_prints_it() {
    let guide = Guide::read("temporal-workers.md");
    let languages = present(
        "From zero to a workflow on Temporal",
        &[PYTHON, TYPESCRIPT, GO, JAVA],
    );
    let shop = Shop::open(&guide).await;
    for (number, language) in (1..).zip(languages) {
        let begun = std::time::Instant::now();
        shop.serve(&guide, language, number).await;
        say(&format!(
            "{}: placed, rolled back, run, failed, woken, refused; {:.1} s",
            language.name,
            begun.elapsed().as_secs_f64()
        ));
    }
    let [looks, _] = guide.blocks("What you see");
    shop.desk.done(&looks);
    shop.close().await;
}

/// Temporal, a `dev`, and what the guide makes there once.
struct Shop {
    desk: Desk,
    ports: Ports,
    pool: PgPool,
    secret: String,
    dev: Running,
    temporal: Running,
}

/// Instead of those that are printed, which somebody may be using.
struct Ports {
    temporal: u16,
    server: u16,
    receiver: u16,
}

impl Ports {
    fn put_into(&self, block: &str) -> String {
        block
            .replace("7233", &self.temporal.to_string())
            .replace("7373", &self.server.to_string())
            .replace("8080", &self.receiver.to_string())
    }
}

impl Shop {
    async fn open(guide: &Guide) -> Self {
        let mut desk = Desk::new();
        let ports = Ports {
            temporal: free_port(),
            server: free_port(),
            receiver: free_port(),
        };
        let [temporal, dev] = guide.blocks("Temporal and a server");
        // Its page would want one more port.
        let headless = format!("{} --headless", ports.put_into(&temporal).trim_end());
        let mut temporal = desk.start(&headless);
        temporal.says("Temporal Server:").await;
        let mut dev = desk.start(&ports.put_into(&dev));
        dev.says("dashboard").await;
        let said = dev.log();
        let database = said
            .split_whitespace()
            .find(|word| word.starts_with("postgres://"));
        let database = database.expect("dev says where its database is");

        let [exports, create] = guide.blocks("The shop");
        let exports = exports.replace(r#"<what dev printed beside "database">"#, database);
        assert!(!exports.contains('<'), "{exports}");
        desk.export(&ports.put_into(&exports));
        desk.done(&ports.put_into(&create));
        let [wakes] = guide.blocks("The programs");
        let secret = desk.done(&format!("{wakes}\necho \"$WAKE_SECRETS\""));
        desk.export(&wakes);
        desk.export(&format!("export WAKE_SECRETS=\"$WAKE_SECRETS {OLD}\""));
        // A graph that no worker of ours can run to its end.
        desk.done(
            "echo '{\"nodes\": [{\"id\": \"paint\", \"type\": \"step\"}]}' > odd.json
             stationmaster workflows create odd --workspace shop --workflow-type Order --task-queue orders --graph odd.json",
        );
        let pool = PgPool::connect(database).await.unwrap();
        Self {
            desk,
            ports,
            pool,
            secret,
            dev,
            temporal,
        }
    }

    async fn close(self) {
        self.pool.close().await;
        self.dev.interrupt().await;
        self.temporal.interrupt().await;
    }

    async fn serve(&self, guide: &Guide, language: Language, number: i32) {
        let [install, worker, receiver, place] = guide.blocks(language.name);
        match list(language) {
            Some(list) => self.desk.install(&install, list),
            None => drop(self.desk.done(&install)),
        }
        let folder = install.lines().next().filter(|line| line.starts_with("cd "));
        let folder = folder.expect("the first line goes to the example's folder");
        let inside = |block: &str| format!("{folder}\n{}", self.ports.put_into(block));
        let mut worker = self.desk.start(&inside(&worker));
        let mut receiver = self.desk.start(&inside(&receiver));

        let order = number * 100 + 17;
        let item = self.place(&inside(&place), order).await;
        worker.says("serving the task queue orders").await;
        self.runs(&item, order).await;
        self.fails(order).await;
        receiver.says("receiving wakes at").await;
        self.is_woken(guide).await;
        self.believes_nobody_else(language.name).await;
        worker.interrupt().await;
        receiver.interrupt().await;
    }

    /// Placed once however often; and a transaction that is rolled back leaves nothing.
    async fn place(&self, place: &str, order: i32) -> String {
        let as_printed = "17 1200";
        assert!(place.contains(as_printed), "{place}");
        let placing = |order: i32, amount: i32| place.replace(as_printed, &format!("{order} {amount}"));
        let item = self.desk.done(&placing(order, 1200));
        let again = self.desk.done(&placing(order, 1200));
        assert_eq!(item, again, "a repeat gives the first item");
        let refused = self.desk.run(&placing(order + 1, 0));
        assert!(!refused.status.success(), "an order of 0 is refused");
        let words = String::from_utf8_lossy(&refused.stderr);
        assert!(
            words.contains("orders_amount_check"),
            "by the table itself: {words}"
        );
        assert_eq!(self.counts(order).await, (1, 1), "an order and an item");
        assert_eq!(self.counts(order + 1).await, (0, 0), "neither");
        item
    }

    /// How many orders and items there are of this number.
    async fn counts(&self, order: i32) -> (i64, i64) {
        let query = "select (select count(*) from orders where id = $1),
            (select count(*) from stationmaster.workflow_execution_queue where idempotency_key = 'order-' || $1)";
        sqlx::query_as(query)
            .bind(order)
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    async fn runs(&self, item: &str, order: i32) {
        let (status, output, error) = self.end_of(item).await;
        assert_eq!(status, "COMPLETED", "{error}");
        let expected = json!({"order": order, "done": ["charged 1200", format!("shipped order {order}")]});
        assert_eq!(output, expected);
    }

    /// What is not worth a repeat ends the run at once, with the worker's own words.
    async fn fails(&self, order: i32) {
        let query =
            "select stationmaster.enqueue('shop', 'odd', jsonb_build_object('order', $1, 'amount', 1))::text";
        let item: String = sqlx::query_scalar(query)
            .bind(order)
            .fetch_one(&self.pool)
            .await
            .unwrap();
        let (status, _, error) = self.end_of(&item).await;
        assert_eq!(status, "FAILED");
        assert!(error.to_string().contains("there is no step paint"), "{error}");
    }

    async fn end_of(&self, item: &str) -> (String, Value, Value) {
        let query = "select e.status, coalesce(e.output, 'null'), coalesce(e.error, 'null')
            from stationmaster.workflow_execution_queue q join stationmaster.workflow_executions e on e.id = q.execution_id
            where q.id = $1::uuid and e.completed_at is not null";
        let mut end = None;
        eventually(&format!("the run of {item} ends"), async || {
            let row = sqlx::query_as(query).bind(item).fetch_optional(&self.pool).await;
            end = row.unwrap();
            end.is_some()
        })
        .await;
        end.unwrap()
    }

    /// Stationmaster's own wake is believed, and acted upon once.
    async fn is_woken(&self, guide: &Guide) {
        sqlx::query("truncate reminders")
            .execute(&self.pool)
            .await
            .unwrap();
        let [_, alarm] = guide.blocks("What you see");
        let shown = self.desk.done(&alarm);
        assert!(
            shown.contains("wake_id"),
            "the last line shows the table: {shown}"
        );
        eventually("the wake is acted upon", async || {
            self.reminders()
                .await
                .iter()
                .any(|(_, message)| message == "count the stock")
        })
        .await;
        let (id, _) = self.reminders().await.remove(0);
        let again = Wake::signed(&id, &[&self.secret]);
        assert_eq!(
            again.send(&self.url()).await,
            StatusCode::NO_CONTENT,
            "the same again"
        );
        let reminders = self.reminders().await;
        assert_eq!(reminders.len(), 1, "{reminders:?}");
        assert_eq!(reminders[0].1, "count the stock", "nothing was written over");
    }

    async fn believes_nobody_else(&self, language: &str) {
        let url = self.url();
        let now = jiff::Timestamp::now().as_second();
        let good = Wake::signed("a:good", &[&self.secret]);
        let changed = Wake {
            body: good.body.replace("by hand", "by hook"),
            ..good.clone()
        };
        let renamed = Wake {
            id: "a:other".to_owned(),
            ..good.clone()
        };
        let other_scheme = Wake {
            signatures: vec![good.signatures[0].replace("v1,", "v2,")],
            ..good.clone()
        };
        let nonsense = Wake {
            signatures: vec!["v1,".to_owned(), "v1,AAAA".to_owned(), "v1".to_owned()],
            ..good.clone()
        };
        let forged = [
            ("another secret", Wake::signed("a:1", &[STRANGE])),
            ("a changed body", changed),
            ("another id", renamed),
            ("another scheme", other_scheme),
            ("nonsense for a signature", nonsense),
            ("no signature", Wake::signed("a:2", &[])),
            (
                "ten minutes old",
                Wake::signed_at("a:3", now - 600, &[&self.secret]),
            ),
            (
                "ten minutes ahead",
                Wake::signed_at("a:4", now + 600, &[&self.secret]),
            ),
        ];
        for (what, wake) in forged {
            assert_eq!(
                wake.send(&url).await,
                StatusCode::UNAUTHORIZED,
                "{language}: {what}"
            );
        }
        assert_eq!(send_bare(&url).await, StatusCode::UNAUTHORIZED, "{language}");
        assert_eq!(
            self.reminders().await.len(),
            1,
            "{language}: none of them was acted upon"
        );

        let several = Wake::signed("a:several", &[STRANGE, &self.secret]);
        let by_the_old = Wake::signed("a:old", &[OLD]);
        for (what, wake) in [("one of several", several), ("the old secret", by_the_old)] {
            assert_eq!(
                wake.send(&url).await,
                StatusCode::NO_CONTENT,
                "{language}: {what}"
            );
        }
        let unwritten = self.do_without_a_table(good.send(&url)).await;
        assert_eq!(
            unwritten,
            StatusCode::SERVICE_UNAVAILABLE,
            "{language}: to be tried again"
        );
        assert_eq!(
            good.send(&url).await,
            StatusCode::NO_CONTENT,
            "{language}: and then taken"
        );
        assert_eq!(self.reminders().await.len(), 4, "{language}");
    }

    /// Without its table the receiver cannot do its work.
    async fn do_without_a_table<T>(&self, what: impl Future<Output = T>) -> T {
        let execute = async |statement| sqlx::query(statement).execute(&self.pool).await.unwrap();
        execute("alter table reminders rename to away").await;
        let answer = what.await;
        execute("alter table away rename to reminders").await;
        answer
    }

    async fn reminders(&self) -> Vec<(String, String)> {
        let query = "select wake_id, coalesce(message, '') from reminders order by wake_id";
        sqlx::query_as(query).fetch_all(&self.pool).await.unwrap()
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/internal/wake", self.ports.receiver)
    }
}

#[test]
fn every_program_that_the_guide_names_is_there() {
    let guide = Guide::read("temporal-workers.md");
    for language in [PYTHON, TYPESCRIPT, GO, JAVA] {
        let [install, ..]: [String; 4] = guide.blocks(language.name);
        let folder = install.lines().next().unwrap().trim_start_matches("cd ");
        let path = crate::guide::repository().join(folder);
        assert!(Path::new(&path).is_dir(), "{folder}");
    }
}
